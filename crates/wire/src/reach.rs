//! Reaching whoever leads: the daemons that may be asked, and the patience with which they are.
//!
//! Where there is one controller, a call goes to it and fails when it fails. Where there are several, or where a daemon of this
//! machine passes calls on, a call is kept and made again, elsewhere, until somebody has answered it; it carries an
//! id, so that what was carried out already is only answered again.
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use model::command::RequestId;
use model::config::Sockets;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use tonic::codegen::{Service, StdError};
use tonic::transport::Channel;

use crate::brief::Brief;
use crate::pages::PAGES_HEADER;
use crate::refusal::CallError;
use crate::{bearer, channel, retry};

/// The id of a request that may come again: 32 hexadecimal digits.
pub const REQUEST_HEADER: &str = "spur-request";
/// On an answer: nothing was done, or nobody knows; ask again.
pub const AGAIN_HEADER: &str = "spur-again";

const CONTROLLER_CALLS: &str = "/spur.v1.Controller/";
/// A controller that has not begun to answer by then is left alone for another; twice as long each time.
const FIRST_WAIT: Duration = Duration::from_secs(3);
/// A user who has been put off again and again for so long is told so.
const PUT_OFF_MAX: Duration = Duration::from_secs(300);
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A way to the controller.
#[derive(Clone)]
pub enum Reach {
    /// One daemon of this machine, as good as it is.
    Brief(Brief),
    /// One connection that was made already.
    Direct(Channel),
    Patient(Arc<Patient>),
}

pub struct Patient {
    places: Sockets,
    sockets: Vec<PathBuf>,
    patience: Duration,
    /// Which of the sockets is used, and the connection to it.
    current: Mutex<(usize, Option<Channel>)>,
}

impl Reach {
    /// Connects now. The patient try all sockets, again and again, as long as they are to.
    pub async fn open(sockets: &Sockets) -> Result<Reach, CallError> {
        if sockets.is_lone() {
            return Brief::open(&sockets.first, sockets.owner).map(Reach::Brief);
        }
        let patient = Patient {
            places: sockets.clone(),
            sockets: sockets.all().map(PathBuf::from).collect(),
            patience: Duration::from_secs(sockets.patience_secs.into()),
            current: Mutex::new((0, None)),
        };
        let give_up = Instant::now() + patient.patience;
        let mut pause = PAUSE_MIN;
        loop {
            match patient.channel().await {
                Ok(_) => return Ok(Reach::Patient(Arc::new(patient))),
                Err(error) if Instant::now() > give_up => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

impl Reach {
    async fn attempt(&self, call: &Call) -> Result<Response<Body>, StdError> {
        match self {
            Reach::Brief(brief) => brief.clone().call(call.request()).await,
            Reach::Direct(channel) => {
                let mut channel = channel.clone();
                std::future::poll_fn(|context| channel.poll_ready(context)).await?;
                Ok(channel.call(call.request()).await?)
            }
            Reach::Patient(patient) => patient.call(call.clone()).await,
        }
    }
}

impl Patient {
    /// The open connection, or one to the first socket that takes one.
    async fn channel(&self) -> Result<Channel, CallError> {
        let (first, open) = self.current.lock().expect("nobody panics with it").clone();
        if let Some(channel) = open {
            return Ok(channel);
        }
        let mut failed = None;
        for offset in 0..self.sockets.len() {
            let number = (first + offset) % self.sockets.len();
            match channel::connect_to(&self.sockets[number], &self.places).await {
                Ok(channel) => {
                    *self.current.lock().expect("nobody panics with it") = (number, Some(channel.clone()));
                    return Ok(channel);
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| CallError::Other("no controller is configured".into())))
    }

    /// The next call tries another controller.
    fn turn_away(&self) {
        let mut current = self.current.lock().expect("nobody panics with it");
        *current = ((current.0 + 1) % self.sockets.len(), None);
    }

    async fn call(&self, mut call: Call) -> Result<Response<Body>, StdError> {
        let id = new_request_id();
        call.headers.insert(REQUEST_HEADER, HeaderValue::from_str(&format!("{:016x}{:016x}", id.0, id.1))?);
        let give_up = Instant::now() + self.patience;
        let (mut wait, mut pause) = (FIRST_WAIT, PAUSE_MIN);
        loop {
            let outcome = self.attempt(&call, wait).await;
            match outcome {
                Ok(answer) if !answer.headers().contains_key(AGAIN_HEADER) => return Ok(answer),
                last if Instant::now() > give_up => return last,
                _ => self.turn_away(),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            wait *= 2;
        }
    }

    async fn attempt(&self, call: &Call, wait: Duration) -> Result<Response<Body>, StdError> {
        let mut channel = self.channel().await?;
        let answer = async {
            std::future::poll_fn(|context| channel.poll_ready(context)).await?;
            Ok::<_, StdError>(channel.call(call.request()).await?)
        };
        tokio::time::timeout(wait, answer).await.map_err(|_| "the controller does not answer")?
    }
}

/// A call that can be made again.
#[derive(Clone)]
struct Call {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Call {
    async fn read(request: Request<Body>) -> Result<Call, StdError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Call { method: parts.method, uri: parts.uri, headers: parts.headers, body })
    }

    fn request(&self) -> Request<Body> {
        let mut request = Request::new(Body::new(Full::new(self.body.clone())));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = tonic::codegen::http::Version::HTTP_2;
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// The id that a request carries, if it may come again.
pub fn read_request_id(text: &str) -> Option<RequestId> {
    let (first, second) = text.split_at_checked(16).filter(|(_, second)| second.len() == 16)?;
    Some(RequestId(u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(second, 16).ok()?))
}

pub fn new_request_id() -> RequestId {
    let half = || u64::from_le_bytes(crate::random::bytes());
    RequestId(half(), half())
}

impl Service<Request<Body>> for Reach {
    type Response = Response<Body>;
    type Error = StdError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, StdError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        match self {
            Reach::Direct(channel) => channel.poll_ready(context).map_err(Into::into),
            Reach::Brief(_) | Reach::Patient(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = bearer::own().and_then(|token| HeaderValue::from_bytes(token.as_bytes()).ok()) {
            request.headers_mut().insert(bearer::HEADER, token);
        }
        request.headers_mut().insert(PAGES_HEADER, HeaderValue::from_static("1"));
        // Only calls of controllers are put off; their requests are single messages. Those of agents go on and on.
        if !request.uri().path().starts_with(CONTROLLER_CALLS) {
            return match self {
                Reach::Brief(brief) => Box::pin(brief.clone().call(request)),
                Reach::Direct(channel) => {
                    let answer = channel.call(request);
                    Box::pin(async move { Ok(answer.await?) })
                }
                Reach::Patient(patient) => {
                    let patient = patient.clone();
                    Box::pin(async move { patient.call(Call::read(request).await?).await })
                }
            };
        }
        let reach = self.clone();
        Box::pin(async move {
            let call = Call::read(request).await?;
            let give_up = Instant::now() + PUT_OFF_MAX;
            loop {
                let answer = reach.attempt(&call).await?;
                match retry::wait_of(answer.headers()) {
                    Some(wait) if Instant::now() < give_up => retry::pause(wait).await,
                    _ => return Ok(answer),
                }
            }
        })
    }
}
