//! What the server says of itself before the run: its model, and whether it answers at all.

use super::args::ServeArgs;
use super::requests::Prepared;
use super::target::{self, Endpoint, distance};
use crate::failure::{Failure, Outcome};
use crate::http::Server;
use tailbound_client::{self as client, Trust};
use tailbound_clock::Dur;
use tailbound_os::{clock, sleep};
use tailbound_record::End;

/// The model to ask for.
pub struct Model {
    /// The name to send.
    pub name: String,
    /// The name that stands for it in reports.
    pub id: String,
    /// Where its tokenizer may be found.
    pub root: String,
}

/// The server at the endpoint's base.
pub fn server(args: &ServeArgs, endpoint: &Endpoint) -> Outcome<Server> {
    let trust = match (&args.target.cacert, args.target.insecure) {
        (_, true) => Trust::Anything,
        (Some(file), false) => Trust::File(file.clone()),
        (None, false) => Trust::System,
    };
    let mut server = Server::new(&endpoint.base, &target::headers(&args.target)?, trust)?;
    server.target.http2 = args.client.http2;
    server.target.check().map_err(|e| Failure::usage(format!("--http2: failed to {e}")))?;
    Ok(server)
}

/// `--model`, else the first one the server lists.
pub fn model(args: &ServeArgs, server: &Server) -> Outcome<Model> {
    let served = args.target.served_model_name.clone();
    if let Some(model) = &args.target.model {
        return Ok(Model { name: served.unwrap_or_else(|| model.clone()), id: model.clone(), root: model.clone() });
    }
    let models =
        server.models().map_err(|e| e.during("asking the server for its models").hint("name one with --model"))?;
    let Some((id, root)) = models.into_iter().next() else {
        return Err(Failure::new("the server lists no model").hint("name one with --model"));
    };
    Ok(Model { name: served.unwrap_or_else(|| id.clone()), id: root.clone(), root })
}

/// Whether anything answers there, within `--ready-check-timeout-sec`: a run against nobody would be a list of refused connections.
pub fn reachable(args: &ServeArgs, server: &Server) -> Outcome<()> {
    let deadline = clock::now() + args.target.ready_check_timeout_sec;
    loop {
        // Any answer will do, as not every server has this path; but a server that still loads its model says 503.
        match server.ask("/health", None) {
            Ok(reply) if reply.status != 503 || clock::now() + RETRY >= deadline => return Ok(()),
            Ok(_) => sleep::until(clock::now() + RETRY),
            Err(e) if clock::now() + RETRY >= deadline => return Err(e),
            Err(_) => sleep::until(clock::now() + RETRY),
        }
    }
}

/// Between two tries at a server that isn't ready.
const RETRY: Dur = Dur::from_secs(1);

/// `--ready-check-timeout-sec`: the first request, again and again until it is answered. Tells how bytes from this server may be
/// acknowledged.
pub fn ready(args: &ServeArgs, server: &Server, prepared: &Prepared) -> Outcome<client::Acks> {
    let patience = args.target.ready_check_timeout_sec;
    if patience.is_zero() {
        return Ok(client::Acks::AtOnce);
    }
    let deadline = clock::now() + patience;
    loop {
        let limits = client::Timeouts { request: patience, ..client::Timeouts::default() };
        let config = client::Config { timeouts: limits, ..client::Config::default() };
        let probe = client::probe(&prepared.first(), &server.target, &config)
            .map_err(|e| Failure::new(format!("failed to {e}")).during("waiting for the server to become ready"))?;
        let End::Failed { cause, detail, .. } = &probe.row.end else {
            let delay = probe.sends_at_once && !args.client.no_delay_acks;
            return Ok(if delay { client::Acks::Delayed } else { client::Acks::AtOnce });
        };
        if clock::now() + RETRY >= deadline {
            return Err(Failure::new(format!("the server did not become ready within {patience}: {cause}: {detail}"))
                .during(format!("asking {}", server.target))
                .hint(model_hint(server, args).unwrap_or_else(|| "make sure the arguments are right".into())));
        }
        sleep::until(clock::now() + RETRY);
    }
}

/// "did you mean …", if the server lists other models.
pub fn model_hint(server: &Server, args: &ServeArgs) -> Option<String> {
    let asked = args.target.served_model_name.as_ref().or(args.target.model.as_ref())?;
    let models = server.models().ok()?;
    if models.iter().any(|(id, _)| id == asked) {
        return None;
    }
    let near = models.iter().min_by_key(|(id, _)| distance(id, asked))?;
    let all: Vec<&str> = models.iter().map(|(id, _)| id.as_str()).collect();
    Some(format!("the server lists {}; did you mean --model {}?", all.join(", "), near.0))
}
