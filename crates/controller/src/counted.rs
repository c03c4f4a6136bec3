//! Counts every call that the service answers, and how long it took.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use wire::origin::Origin;

use crate::statistics::Statistics;

#[derive(Clone)]
pub struct Counted<S> {
    pub inner: S,
    pub statistics: Arc<Statistics>,
}

impl<S: NamedService> NamedService for Counted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<http::Request<B>> for Counted<S>
where
    S: Service<http::Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let path = request.uri().path();
        let call = path.rsplit('/').next().unwrap_or(path).to_string();
        let uid = request.extensions().get::<Origin>().and_then(|origin| origin.user).map(|user| user.uid);
        let statistics = self.statistics.clone();
        let begun = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            statistics.answered(&call, uid, begun.elapsed());
            answer
        })
    }
}
