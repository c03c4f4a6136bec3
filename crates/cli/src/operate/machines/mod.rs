//! A cluster of many machines: `spur init` begins it, `spur join` adds to it, `spur node` and `spur controller` look after it.
mod init;
mod join;
mod join_token;
mod user_tokens;

use model::members::Wish;
use model::trust::{Role, TokensRequest};
use wire::Controller;

use super::folder::Folder;
use super::{Call, directory, status};
use crate::context::{self, block_on};
use crate::getopt::{self, Flag, Operands, Parsed, Value, flag};

pub use init::run as init;
pub use join::run as join;

/// Where controllers are heard if nobody says otherwise.
const PORT: u16 = 6817;
/// Where agents are, by the commands of other machines.
const AGENT_PORT: u16 = 6818;

/// `spur token [--controller | --login]`, and what `user_tokens` does.
pub fn token(call: &Call) -> Result<i32, String> {
    let flags = [
        flag("dir", Some('d'), Value::Required),
        flag("controller", None, Value::None),
        flag("login", None, Value::None),
        flag("now", None, Value::None),
    ];
    let parsed = getopt::parse(&flags, Operands::Mixed, call.arguments)?;
    if let Some(asked) = user_tokens::asked(&parsed) {
        let asked = asked?;
        let is_now = matches!(asked, TokensRequest::Rotate { at_once: true });
        if parsed.has("controller") || parsed.has("login") || parsed.has("now") != is_now {
            return Err("--controller and --login are for join tokens, --now is for `token rotate`".into());
        }
        return user_tokens::run(&parsed, &asked);
    }
    let role = match (parsed.has("controller"), parsed.has("login"), parsed.has("now")) {
        (false, false, false) => Role::Node,
        (true, false, false) => Role::Controller,
        (false, true, false) => Role::Login,
        _ => return Err("a token is for a node, with --login for a login node, or with --controller".into()),
    };
    invite(&parsed, role)
}

/// `spur client`: what a machine that is no part of the cluster needs to ask it, with a token in `SLURM_JWT`.
pub fn client(call: &Call) -> Result<i32, String> {
    let parsed = super::options(&[flag("dir", Some('d'), Value::Required)], call.arguments)?;
    let told = asking(&parsed, async |mut controller| controller.configuration().await)?;
    let (name, authority, controllers) = (told.config.cluster_name, told.authority, told.controllers);
    if controllers.is_empty() || authority.is_empty() {
        return Err("no controller of this cluster can be reached from other machines".into());
    }
    let digits: String = authority.iter().map(|byte| format!("{byte:02x}")).collect();
    say!("cluster_name = {name:?}\n\n[client]\ncontrollers = {controllers:?}\nauthority = \"{digits}\"");
    eprintln!(
        "Save this as ~/.spur/spur.conf or /etc/spur/spur.conf of the other machine, and set SLURM_JWT there to what `scontrol token` prints."
    );
    Ok(0)
}

/// `spur node remove NAME`
pub fn node(call: &Call) -> Result<i32, String> {
    let parsed = words(call.arguments)?;
    let words: Vec<&str> = parsed.operands.iter().map(String::as_str).collect();
    match words[..] {
        ["remove", name] => {
            asking(&parsed, async |mut controller| controller.remove_node(&name.into()).await)?;
            eprintln!("Node {name} is no longer part of the cluster; its certificate is worth nothing any more.");
            Ok(0)
        }
        _ => Err("usage: spur node remove NAME".into()),
    }
}

/// `spur controller add | list | remove NUMBER | lead NUMBER`
pub fn controller(call: &Call) -> Result<i32, String> {
    let parsed = words(call.arguments)?;
    let words: Vec<&str> = parsed.operands.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("a controller's number, not '{text}'"));
    let wish = match words[..] {
        ["add"] => return invite(&parsed, Role::Controller),
        ["list"] => {
            let members = asking(&parsed, async |mut controller| controller.members().await)?;
            crate::output::print(&status::members_as_text(&members));
            return Ok(0);
        }
        ["remove", id] => Wish::Remove { id: number(id)? },
        ["lead", id] => Wish::Lead { id: Some(number(id)?) },
        _ => return Err("usage: spur controller add | list | remove NUMBER | lead NUMBER".into()),
    };
    asking(&parsed, async |mut controller| controller.change_members(&wish).await)?;
    if let Wish::Remove { id } = wish {
        eprintln!("Controller {id} has no vote any more: stop it on its machine with `spur down`.");
    }
    Ok(0)
}

/// Prints what is to be typed on the other machine.
fn invite(parsed: &Parsed, role: Role) -> Result<i32, String> {
    let (token, controllers) = asking(parsed, async |mut controller| controller.make_token(role).await)?;
    let host = controllers.first().ok_or("no controller of this cluster can be reached from other machines")?;
    let option = if role == Role::Controller { " --controller" } else { "" };
    // A here-string is on nobody's command line.
    say!("spur join{option} <<< {token}@{host}");
    eprintln!("Type this on the other machine within an hour; it works once.");
    Ok(0)
}

fn words(arguments: &[String]) -> Result<Parsed, String> {
    const FLAGS: &[Flag] = &[flag("dir", Some('d'), Value::Required)];
    getopt::parse(FLAGS, Operands::Mixed, arguments)
}

fn asking<T>(parsed: &Parsed, ask: impl AsyncFnOnce(Controller) -> Result<T, wire::CallError>) -> Result<T, String> {
    let sockets = match directory(parsed) {
        Some(dir) => {
            let conf = Folder::to_find(Some(&dir))?.conf();
            config::load(&conf).map_err(|error| error.to_string())?.controller.sockets()
        }
        None => context::cluster()?.controller_socket,
    };
    let asked = block_on(async { ask(Controller::connect(sockets).await?).await });
    asked.map_err(|error| crate::trouble::text(&error))
}

/// `host` with the usual port unless it has one.
fn with_port(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { host.to_owned() } else { format!("{host}:{PORT}") }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
