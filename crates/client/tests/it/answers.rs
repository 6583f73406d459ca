use crate::server::*;
use std::sync::OnceLock;
use tailbound_client::{Config, Control, Request, Requests, run};
use tailbound_clock::Dur;
use tailbound_record::Row;
use tailbound_workload::{IntentId, Load, Sessions, Spec, Turn};

/// Requests of which every second follows the one before and says what that one was answered.
struct Following(Vec<OnceLock<Vec<u8>>>);

impl Requests for Following {
    fn request(&self, id: IntentId) -> Request<'_> {
        let body = self.0[id.0 as usize].get().expect("asked for before it was written");
        Request {
            keep_text: id.0.is_multiple_of(2),
            ..Request::new(tailbound_wire::Api::Completions, "/v1/completions", &**body)
        }
    }

    fn answered(&self, row: &Row) {
        let Some(next) = self.0.get(row.id as usize + 1).filter(|_| row.id.is_multiple_of(2)) else { return };
        let text = row.text.as_deref().expect("its text was asked for");
        next.set(text.as_bytes().to_vec()).expect("answered once");
    }
}

#[test]
fn an_answer_is_handed_over_before_what_follows_it_is_asked_for() {
    const PAIRS: u32 = 40;
    let (told, heard) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let addr = start(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let body = request.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
            let _ = told.lock().expect("nobody panics").send(body);
            let answer = format!("{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(3)));
            if std::io::Write::write_all(&mut stream, answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let turn = |i: u32| (i % 2 == 1).then(|| Turn { after: i - 1, wait: Dur::ZERO, earliest: None });
    let sessions = Sessions { turns: (0..2 * PAIRS).map(turn).collect(), end_with_failure: true };
    let spec = Spec { sessions: Some(sessions), max_concurrency: Some(8), ..Spec::default() };
    let requests = Following((0..2 * PAIRS).map(|_| OnceLock::new()).collect());
    for first in requests.0.iter().step_by(2) {
        first.set(b"{}".to_vec()).expect("set once");
    }
    let mut load = Load::new(spec.plan().expect("a plan").into());
    let config = Config { threads: 2, keep_text: false, ..quick() };
    let mut rows = Vec::new();
    run(&mut load, &requests, &target(addr), &config, &Control::new(), &mut |row| rows.push(row)).expect("a run");
    assert!(rows.len() == 2 * PAIRS as usize && rows.iter().all(Row::ok));
    assert!(rows.iter().all(|row| row.text.is_none()), "what was kept for the requests is not in the rows");
    let bodies: Vec<String> = heard.try_iter().collect();
    assert_eq!(bodies.iter().filter(|body| *body == "w0 w1 w2 ").count(), PAIRS as usize);
}
