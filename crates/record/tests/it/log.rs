use proptest::prelude::*;
use tailbound_clock::Time;
use tailbound_record::log::{Damage, LogError, Reader, Record, Writer, examine};
use tailbound_record::{Blame, Cause, End, Finish, Limit, Moment, Phase, Row, StampSource, Why};

fn why() -> impl Strategy<Value = Why> {
    prop::sample::select(vec![Why::Interrupted, Why::Duration, Why::Rule, Why::Planned])
}

fn cause() -> impl Strategy<Value = Cause> {
    let limits = vec![Limit::Connect, Limit::FirstToken, Limit::Gap, Limit::Request];
    prop_oneof![
        any::<u16>().prop_map(Cause::Status),
        prop::sample::select(limits).prop_map(Cause::Timeout),
        prop::sample::select(vec![
            Cause::NoAddress,
            Cause::Refused,
            Cause::Reset,
            Cause::Tls,
            Cause::Protocol,
            Cause::ErrorObject,
            Cause::EndedEarly,
            Cause::NoTokens,
            Cause::LocalLimit,
            Cause::Io,
        ]),
    ]
}

fn end() -> impl Strategy<Value = End> {
    let finishes =
        vec![Finish::Stop, Finish::Length, Finish::ToolCalls, Finish::ContentFilter, Finish::Other, Finish::Unstated];
    let phases = vec![
        Phase::Resolve,
        Phase::Connect,
        Phase::Tls,
        Phase::Write,
        Phase::Headers,
        Phase::FirstToken,
        Phase::Stream,
    ];
    let blames = vec![Blame::Server, Blame::Network, Blame::Client];
    let failed = (prop::sample::select(phases), prop::sample::select(blames), cause(), ".{0,20}");
    prop_oneof![
        prop::sample::select(finishes).prop_map(End::Done),
        failed.prop_map(|(phase, blame, cause, detail)| End::Failed { phase, blame, cause, detail: detail.into() }),
        why().prop_map(End::Cancelled),
        why().prop_map(End::NeverSent),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    let moments = prop::collection::vec(prop::option::of(0..u64::MAX), Moment::COUNT);
    let counts = prop::collection::vec(any::<Option<u32>>(), 7);
    let chunks = prop::collection::vec((0..u64::MAX, any::<u32>(), any::<u16>(), any::<bool>()), 0..12);
    let sources = vec![StampSource::Kernel, StampSource::Mixed, StampSource::User, StampSource::Virtual];
    let net = (any::<u16>(), any::<bool>(), any::<u8>(), any::<u32>(), any::<u64>());
    let name = (any::<u64>(), any::<u16>(), any::<u16>());
    (name, moments, counts, chunks, end(), prop::sample::select(sources), net, prop::option::of(".{0,30}")).prop_map(
        |((id, class, worker), moments, counts, chunks, end, stamps, net, text)| {
            let mut row = Row::new(id);
            (row.class, row.worker, row.end, row.stamps) = (class, worker, end, stamps);
            for (moment, at) in Moment::ALL.into_iter().zip(moments) {
                if let Some(at) = at {
                    row.at.set(moment, Time(at));
                }
            }
            row.tokens.prompt_asked = counts[0];
            row.tokens.prompt_server = counts[1];
            row.tokens.cached_server = counts[2];
            row.tokens.output_asked = counts[3];
            row.tokens.output_server = counts[4];
            row.tokens.reasoning_server = counts[5];
            row.tokens.output_tokenized = counts[6];
            for (at, read, tokens, visible) in chunks {
                row.chunks.push(Time(at), read, tokens, visible);
            }
            (row.net.status, row.net.reused, row.net.retries, row.net.reads, row.net.body_bytes) = net;
            row.text = text.map(Into::into);
            row
        },
    )
}

fn written(rows: &[Row]) -> (Vec<u8>, Vec<usize>) {
    let mut writer = Writer::new(Vec::new()).expect("a Vec takes all");
    let mut ends = vec![writer.get_mut().len()];
    for row in rows {
        writer.row(row).expect("a Vec takes all");
        ends.push(writer.get_mut().len());
    }
    (std::mem::take(writer.get_mut()), ends)
}

/// Rows have no equality of their own (nobody else needs it); all their fields are in their debug form.
fn same(a: &Row, b: &Row) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn read(bytes: &[u8]) -> (Vec<Row>, Option<Damage>, u64) {
    let mut reader = Reader::new(bytes).expect("a log");
    let mut rows = Vec::new();
    for record in &mut reader {
        match record.expect("a slice can be read") {
            Record::Row(row) => rows.push(*row),
            Record::Note { .. } => {}
        }
    }
    (rows, reader.damage(), reader.whole())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rows_come_back_as_they_were(rows in prop::collection::vec(row(), 0..6)) {
        let (bytes, _) = written(&rows);
        let (back, damage, whole) = read(&bytes);
        prop_assert_eq!(damage, None);
        prop_assert_eq!(whole as usize, bytes.len());
        prop_assert_eq!(back.len(), rows.len());
        prop_assert!(back.iter().zip(&rows).all(|(a, b)| same(a, b)));
    }

    #[test]
    fn a_log_cut_anywhere_keeps_every_whole_record(rows in prop::collection::vec(row(), 1..4)) {
        let (bytes, ends) = written(&rows);
        for cut in 0..bytes.len() {
            let (back, damage, whole) = read(&bytes[..cut]);
            let complete = ends.iter().filter(|&&end| end <= cut).count().saturating_sub(1);
            prop_assert_eq!(back.len(), complete);
            prop_assert!(back.iter().zip(&rows).all(|(a, b)| same(a, b)));
            let at_an_end = ends.contains(&cut);
            prop_assert_eq!(damage, (!at_an_end).then_some(Damage::Torn));
            let last_end = ends.iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
            prop_assert_eq!(whole as usize, last_end);
        }
    }

    #[test]
    fn a_flipped_bit_never_gives_a_wrong_row(rows in prop::collection::vec(row(), 1..4), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let (mut bytes, _) = written(&rows);
        let at = 8 + at.index(bytes.len() - 8);
        bytes[at] ^= 1 << bit;
        let (back, damage, _) = read(&bytes);
        prop_assert!(damage.is_some());
        prop_assert!(back.len() < rows.len());
        prop_assert!(back.iter().zip(&rows).all(|(a, b)| same(a, b)));
    }

    #[test]
    fn noise_is_never_a_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = written(&[]).0;
        bytes.extend(noise);
        let _ = read(&bytes);
    }
}

#[test]
fn a_log_can_be_gone_on_with_after_its_torn_tail_was_cut_off() {
    let rows: Vec<Row> = (0..3).map(Row::new).collect();
    let (bytes, _) = written(&rows);
    let torn = &bytes[..bytes.len() - 3];
    let (_, damage, whole) = read(torn);
    assert_eq!(damage, Some(Damage::Torn));
    let mut writer = Writer::append(torn[..whole as usize].to_vec());
    writer.note("manifest", b"{}").unwrap();
    writer.row(&Row::new(9)).unwrap();
    let records: Vec<_> = Reader::new(&writer.get_mut()[..]).unwrap().map(Result::unwrap).collect();
    let ids: Vec<_> =
        records.iter().filter_map(|r| if let Record::Row(row) = r { Some(row.id) } else { None }).collect();
    assert_eq!(ids, [0, 1, 9]);
    assert!(matches!(&records[2], Record::Note { name, bytes } if name == "manifest" && bytes == b"{}"));
}

#[test]
fn other_files_are_no_logs() {
    assert!(matches!(Reader::new(&b"{\"a\":1}xx"[..]), Err(LogError::NotALog)));
    assert_eq!(Reader::new(&b""[..]).unwrap().damage(), Some(Damage::Torn));
}

#[test]
fn a_usual_row_takes_few_bytes() {
    let mut row = Row::new(12_345);
    let start = 3_000_000_000_000u64;
    for (i, moment) in Moment::ALL.into_iter().enumerate() {
        row.at.set(moment, Time(start + i as u64 * 40_000));
    }
    for i in 0..100u64 {
        row.chunks.push(Time(start + i * 20_000_000 + i % 7 * 1_000), i as u32 + 1, 1, true);
    }
    let (bytes, ends) = written(&[row]);
    assert!(bytes.len() - ends[0] < 100 * 7 + 120, "{}", bytes.len());
}

proptest! {
    /// Whatever byte of a record is changed, that record alone is reported, and every other is read.
    #[test]
    fn one_changed_byte_is_one_unsound_record(rows in prop::collection::vec(row(), 1..6), pick: prop::sample::Index, bits in 1..=255u8) {
        let (mut bytes, ends) = written(&rows);
        let starts = &ends[..rows.len()];
        let at = starts[0] + pick.index(bytes.len() - starts[0]);
        let hit = starts.iter().rposition(|&s| s <= at).unwrap();
        bytes[at] ^= bits;
        let found = examine(&bytes[..]).unwrap();
        let unsound: Vec<usize> = found.iter().enumerate().filter(|(_, r)| !r.sound).map(|(i, _)| i).collect();
        prop_assert_eq!(unsound, vec![hit]);
        prop_assert_eq!(found[hit].offset, starts[hit] as u64);
        prop_assert_eq!(found.len(), rows.len());
    }
}

#[test]
fn a_sound_log_examined_is_the_log_that_was_written() {
    let rows: Vec<Row> = (0..3).map(Row::new).collect();
    let (bytes, ends) = written(&rows);
    let found = examine(&bytes[..]).unwrap();
    let ids: Vec<u64> = found
        .iter()
        .map(|r| match &r.record {
            Some(Record::Row(row)) if r.sound => row.id,
            _ => panic!("{r:?}"),
        })
        .collect();
    assert_eq!(ids, [0, 1, 2]);
    assert_eq!(found.iter().map(|r| r.offset as usize).collect::<Vec<_>>(), ends[..3]);
    assert!(matches!(examine(&b"nothing"[..]), Err(LogError::NotALog)));
}
