use crate::server::*;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use tailbound_client::{Config, Control};
use tailbound_clock::Dur;
use tailbound_record::{End, Row, Why};
use tailbound_workload::Spec;

/// Runs and stops it, once `when` says so; ends with the rows.
fn stopped(
    spec: &Spec,
    addr: SocketAddr,
    config: &Config,
    when: impl Fn(&Control) -> bool + Sync,
    abort: bool,
) -> Vec<Row> {
    let control = Control::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !when(&control) {
                pause(1);
            }
            if abort { control.abort(Why::Interrupted) } else { control.stop(Why::Interrupted) }
        });
        drive(spec, &target(addr), config, &control).0
    })
}

fn cancelled(rows: &[Row]) -> usize {
    rows.iter().filter(|row| row.end == End::Cancelled(Why::Interrupted)).count()
}

fn never_sent(rows: &[Row]) -> usize {
    rows.iter().filter(|row| row.end == End::NeverSent(Why::Interrupted)).count()
}

fn short_grace() -> Config {
    Config { grace: Dur::from_ms(100), ..quick() }
}

#[test]
fn stopped_while_waiting_for_an_answer() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        hold(stream);
    });
    let rows = stopped(&spec(10, 3), addr, &short_grace(), |c| c.progress().sent == 3, false);
    assert_eq!((rows.len(), cancelled(&rows), never_sent(&rows)), (10, 3, 7));
}

#[test]
fn stopped_in_the_middle_of_a_stream() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        let _ = write!(stream, "{SSE_CHUNKED}{}", chunk(&event("a", None)));
        hold(stream);
    });
    let started = std::sync::atomic::AtomicUsize::new(0);
    let rows = stopped(
        &spec(2, 2),
        addr,
        &short_grace(),
        |c| c.progress().sent == 2 && started.fetch_add(1, Ordering::Relaxed) > 100,
        false,
    );
    assert_eq!((rows.len(), cancelled(&rows)), (2, 2));
    assert!(rows.iter().all(|row| row.chunks.len() == 1), "what had come is kept");
}

#[test]
fn stopped_while_connecting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    tailbound_os::socket::widen_backlog(&listener, 0).unwrap();
    let rows = stopped(&spec(8, 8), listener.local_addr().unwrap(), &short_grace(), |c| c.progress().sent == 8, false);
    assert_eq!((rows.len(), cancelled(&rows)), (8, 8));
}

#[test]
fn what_answers_within_the_grace_is_kept() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        pause(150);
        let _ = write!(stream, "{SSE_CHUNKED}{}0\r\n\r\n", chunk(&stream_of(2)));
        hold(stream);
    });
    let rows = stopped(&spec(9, 3), addr, &quick(), |c| c.progress().sent == 3, false);
    assert_eq!(rows.iter().filter(|row| row.ok()).count(), 3);
    assert_eq!(never_sent(&rows), 6);
}

#[test]
fn the_second_signal_waits_for_nothing() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        hold(stream);
    });
    let config = Config { grace: Dur::from_secs(3600), ..quick() };
    let rows = stopped(&spec(4, 4), addr, &config, |c| c.progress().sent == 4, true);
    assert_eq!(cancelled(&rows), 4);
}

#[test]
fn stopped_before_anything_was_due() {
    let spec =
        Spec { num_prompts: Some(5), request_rate: Some(0.001), burstiness: Some(f64::INFINITY), ..Spec::default() };
    let addr = start(|stream, _| serve_well(stream, 1));
    let rows = stopped(&spec, addr, &quick(), |_| true, false);
    assert_eq!(rows.len(), 5);
    assert!(never_sent(&rows) >= 4);
}

#[test]
fn a_run_whose_time_is_over_ends_by_itself() {
    let addr = start(|mut stream, _| {
        read_request(&mut stream);
        hold(stream);
    });
    let spec = Spec { max_concurrency: Some(2), duration: Some(Dur::from_ms(100)), ..Spec::default() };
    let (rows, _) = drive(&spec, &target(addr), &short_grace(), &Control::new());
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.end == End::Cancelled(Why::Duration)), "{:?}", rows[0].end);
}

#[test]
fn progress_adds_up() {
    let addr = start(|stream, _| serve_well(stream, 3));
    let control = Control::new();
    let (rows, log) = drive(&spec(20, 4), &target(addr), &quick(), &control);
    let progress = control.progress();
    assert_eq!((progress.sent, progress.done, progress.failed, progress.in_flight()), (20, 20, 0, 0));
    assert_eq!((progress.chunks, progress.tokens, progress.connections), (60, 60, 0));
    assert_eq!((rows.len(), log.late.len()), (20, 20));
    assert!(log.end > log.start && log.origin.is_some() && !log.noise.sorted_ns.is_empty());
}
