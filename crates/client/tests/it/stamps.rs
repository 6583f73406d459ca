use crate::server::*;
use std::io::Write;
use std::sync::mpsc;
use tailbound_client::{Config, Control};
use tailbound_os::clock;
use tailbound_record::{Moment, StampSource};

/// Events that the server wrote apart carry stamps from between its writes, and read numbers of their own; events that it wrote
/// together share both. The server's own clock readings are the truth.
#[test]
fn every_event_is_attributed_to_the_read_that_brought_it() {
    for gather in [true, false] {
        let (sender, log) = mpsc::channel();
        let addr = start(move |mut stream, _| {
            let _ = stream.set_nodelay(true);
            read_request(&mut stream);
            let _ = stream.write_all(SSE_CHUNKED.as_bytes());
            let mut writes = Vec::new();
            for i in 0..12 {
                pause(12);
                let together: String = (0..=i % 3).map(|k| event(&format!("{i}.{k} "), None)).collect();
                let before = clock::now();
                let _ = stream.write_all(chunk(&together).as_bytes());
                writes.push((before, 1 + i % 3));
            }
            pause(12);
            let _ = stream.write_all(format!("{}0\r\n\r\n", chunk(&event("", Some("stop")))).as_bytes());
            let _ = sender.send((writes, clock::now()));
            hold(stream);
        });
        let config = Config { gather, ..quick() };
        let row = ask(addr, &config);
        assert!(row.ok(), "{:?}", row.end);
        if row.stamps != StampSource::Kernel {
            println!("skipped: this kernel gives no receive stamps ({:?})", row.stamps);
            return;
        }
        let (writes, end) = log.recv().unwrap();
        let mut chunks = row.chunks.as_slice().iter().peekable();
        for (i, &(before, events)) in writes.iter().enumerate() {
            let group: Vec<_> = chunks.by_ref().take(events).collect();
            assert_eq!(group.len(), events);
            let next = writes.get(i + 1).map_or(end, |(next, _)| *next);
            // A reader that came late gets two writes in one read, with the later stamp.
            let shared = chunks.peek().is_some_and(|next| next.read == group[0].read);
            for chunk in &group {
                assert!(chunk.at.minus(before) > -60_000, "event of write {i} is stamped before it was written");
                assert!(shared || chunk.at < next, "event of write {i} is stamped after the next write");
                assert_eq!((chunk.at, chunk.read), (group[0].at, group[0].read));
            }
        }
        let reads: Vec<_> = row.chunks.as_slice().iter().map(|chunk| chunk.read).collect();
        assert!(reads.is_sorted() && reads[0] >= 1);
    }
}

#[test]
fn lateness_is_noted_for_every_request_of_an_open_loop() {
    let addr = start(|stream, _| serve_well(stream, 1));
    let spec = tailbound_workload::Spec { num_prompts: Some(100), request_rate: Some(500.0), ..Default::default() };
    let (rows, log) = drive(&spec, &target(addr), &quick(), &Control::new());
    assert_eq!((rows.len(), log.late.len()), (100, 100));
    for row in &rows {
        let scheduled = row.at.get(Moment::Scheduled).unwrap();
        let released = row.at.get(Moment::Released).unwrap();
        assert_eq!(released, scheduled, "without a cap nothing but the schedule releases");
        let left = row.at.get(Moment::ConnectStart).or(row.at.get(Moment::WriteStart)).unwrap();
        assert!(left >= released, "sent before its time");
        let late = log.late.iter().find(|late| u64::from(late.id) == row.id).unwrap();
        assert!(late.by <= left.since(released), "{late:?}");
    }
}
