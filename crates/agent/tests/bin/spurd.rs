//! An agent for the tests: `spurd-test NODE CONTROLLER_SOCKET DIR`, or the fork server when called as `spurstepd`.
use std::path::PathBuf;
use std::time::Duration;

fn main() {
    std::process::exit(start());
}

fn start() -> i32 {
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == "spurstepd" => return agent::supervise(arguments),
        Some(name) if name == agent::PMIX_NAME => return agent::serve_pmix(),
        Some(name) if name == agent::PROLOG_NAME => return agent::run_prolog(),
        Some(name) if name == agent::MOVER_NAME => return agent::move_data(arguments),
        _ => {}
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [node, controller, dir] = arguments.as_slice() else {
        eprintln!("spurd-test NODE CONTROLLER_SOCKET DIR");
        return 1;
    };
    let dir = PathBuf::from(dir);
    let options = agent::Options {
        node: node.as_str().into(),
        controllers: vec![controller.into()],
        remote: None,
        config_file: None,
        topology: None,
        dynamic: None,
        reports_reboot: false,
        socket: dir.join("agent.sock"),
        spool_dir: dir.join("spool"),
        pid_file: Some(dir.join("agent.pid")),
        log_file: None,
        heartbeat: Duration::from_millis(500),
        measure_every: Duration::from_millis(300),
        unkillable_timeout: Duration::from_secs(60),
        pools: vec![model::pool::Pool {
            name: "local".into(),
            kind: model::pool::PoolKind::Node,
            root: dir.join("pool").display().to_string(),
            ..model::pool::Pool::default()
        }],
    };
    match agent::run(options) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("spurd-test: {error:#}");
            1
        }
    }
}
