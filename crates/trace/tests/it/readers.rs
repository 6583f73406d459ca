//! Formats without a file in `expected.json`: real files counted by other means, and hand-made records in the published schemas.

use std::io::Cursor;
use tailbound_clock::Dur;
use tailbound_trace::{
    Body, Clock, Columns, Drop, Error, Format, Message, Options, Row, Trace, Unit, describe, open, read,
};

fn rows_of(text: &str, options: &Options) -> (Vec<Row>, tailbound_trace::Reader) {
    let mut reader = read("made", Cursor::new(text.to_owned()), options).unwrap();
    let rows = reader.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    assert!(reader.accounting().adds_up());
    (rows, reader)
}

fn real(file: &str) -> Option<(Vec<Row>, tailbound_trace::Reader)> {
    let mut reader = open(crate::data()?.join(file), &Options::default()).unwrap();
    let rows = reader.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    assert!(reader.accounting().adds_up());
    Some((rows, reader))
}

fn more(row: &Row) -> &tailbound_trace::More {
    row.more.as_ref().unwrap()
}

fn said(row: &Row) -> &[Message] {
    match &more(row).body {
        Body::Messages(list) | Body::Added(list) => list,
        other => panic!("{other:?}"),
    }
}

fn columns(map: &[(&str, &str)]) -> Columns {
    let map: serde_json::Map<_, _> = map.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    serde_json::from_value(map.into()).unwrap()
}

/// The fields are those of AIPerf 0.13's models of the format (`weka_trace_models.py`).
const WEKA: &str = r#"{"id": "conv-a", "models": ["m1"], "block_size": 32, "hash_id_scope": "local", "tool_tokens": 5, "requests": [
  {"t": 0.0, "type": "s", "model": "m1", "in": 70, "out": 20, "hash_ids": [1, 2], "api_time": 2.5, "stop": "tool_use", "ttft": 0.2},
  {"t": 3.0, "type": "subagent", "agent_id": "agent_001", "subagent_type": "Explore", "duration_ms": 900, "total_tokens": 80,
   "tool_use_count": 1, "status": "completed", "models": ["m2"], "requests": [
     {"t": 0.25, "type": "n", "model": "m2", "in": 33, "out": 7, "hash_ids": [9]},
     {"t": 1.25, "type": "n", "model": "m2", "in": 64, "out": 8, "hash_ids": [9, 10]}]},
  {"t": 5.5, "type": "n", "model": "m1", "in": 110, "out": 30, "hash_ids": [1, 2, 3], "think_time": 0.5, "api_time": null}]}
{"id": "conv-b", "models": ["m1"], "block_size": 32, "hash_id_scope": "local", "requests": [
  {"t": 0.0, "type": "n", "model": "m1", "in": 40, "out": 1, "hash_ids": [1]}, {"t": 1.0, "type": "tool"}]}"#;

#[test]
fn weka_conversations_hold_their_sub_agents_times_and_blocks() {
    let (rows, reader) = rows_of(WEKA, &Options::default());
    assert_eq!((reader.format(), reader.block_tokens(), reader.clock()), (Format::Weka, Some(32), Clock::Offset));
    let secs: Vec<f64> = rows.iter().map(|r| r.at.unwrap() as f64 / 1e9).collect();
    // A sub-agent's times count from its spawning at 3 s: its first request would come before that otherwise.
    assert_eq!(secs, [0.0, 3.25, 4.25, 5.5, 0.0]);
    assert_eq!(
        rows.iter().map(|r| (r.input, r.output)).collect::<Vec<_>>(),
        [(Some(70), Some(20)), (Some(33), Some(7)), (Some(64), Some(8)), (Some(110), Some(30)), (Some(40), Some(1))]
    );
    let name = |n: Option<tailbound_trace::Name>| n.map(|n| reader.names().text(n).to_owned());
    assert_eq!(
        rows.iter().map(|r| name(r.session).unwrap()).collect::<Vec<_>>(),
        ["conv-a", "conv-a", "conv-a", "conv-a", "conv-b"]
    );
    assert_eq!(rows.iter().map(|r| name(r.class).unwrap()).collect::<Vec<_>>(), ["s", "Explore", "Explore", "n", "n"]);
    // The sub-agent follows from the request that spawned it, and so does the conversation's next request.
    let ids: Vec<_> = rows.iter().map(|r| more(r).id.unwrap()).collect();
    assert_eq!(
        rows.iter().map(|r| more(r).parent).collect::<Vec<_>>(),
        [None, Some(ids[0]), Some(ids[1]), Some(ids[0]), None]
    );
    assert_eq!(rows[0].took, Some(Dur::from_ms(2500)));
    assert_eq!((rows[3].took, more(&rows[3]).think), (None, Some(Dur::from_ms(500))));
    // Ids count within a conversation: the 1 of the second is not the 1 of the first.
    assert_eq!(rows[0].blocks().unwrap()[0], rows[3].blocks().unwrap()[0]);
    assert_ne!(rows[0].blocks().unwrap()[0], rows[4].blocks().unwrap()[0]);
    assert_eq!(reader.accounting().dropped[&Drop::NotARequest].count, 1);
}

#[test]
fn weka_conversations_of_other_block_sizes_are_not_mixed() {
    let text = WEKA.replacen(
        "\"id\": \"conv-b\", \"models\": [\"m1\"], \"block_size\": 32",
        "\"id\": \"conv-b\", \"block_size\": 64",
        1,
    );
    let error = read("made", Cursor::new(text), &Options::default()).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(&error, Error::Row { row: 2, .. }) && error.to_string().contains("read them apart"), "{error}");
}

#[test]
fn weka_sharing_is_described_with_its_own_block_size() {
    let mut reader = read("made", Cursor::new(WEKA), &Options::default()).unwrap();
    let prefix = describe(&mut reader).unwrap().prefix.unwrap();
    assert_eq!((prefix.block_tokens, prefix.hash_ids.distinct), (32, 6));
    // 9 again, then 1 and 2 again.
    assert_eq!((prefix.prefix_cache[0].block_hits, prefix.prefix_cache[0].token_hits), (3, 96));
}

#[test]
fn sglang_turns_carry_their_whole_prompts() {
    let text = r#"{"metadata": {"model": "m"}, "conversations": [
        [{"messages": [{"role": "user", "content": "a"}], "prompt_tokens": 12},
         {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}], "prompt_tokens": 40, "completion_tokens": 9}],
        [], [{"prompt_tokens": 3}]]}"#;
    let (rows, reader) = rows_of(text, &Options::default());
    assert_eq!((reader.format(), reader.accounting().records), (Format::SglangAgentic, 3));
    assert_eq!(rows.iter().map(|r| (r.input, r.output)).collect::<Vec<_>>(), [(Some(12), None), (Some(40), Some(9))]);
    assert_eq!(rows[0].session, rows[1].session);
    assert_eq!((more(&rows[1]).turn, said(&rows[1]).len()), (Some(2), 3));
    assert_eq!(reader.accounting().dropped[&Drop::NoTurns].first_row, 2);
    assert_eq!(reader.accounting().dropped[&Drop::MissingField].first_row, 3);
}

#[test]
fn spans_of_real_traces_are_requests() {
    for (file, n, sessions) in [
        ("customer_support_escalation", 9, &["session_006"][..]),
        ("fan_in_dependencies", 4, &["session_003"]),
        (
            "prefix_sharing_example",
            7,
            &["independent_trace_1", "independent_trace_2", "conversation_trace", "independent_trace_3"],
        ),
        ("simple_chain", 3, &["session"]),
    ] {
        let Some((rows, reader)) = real(&format!("otel-traces/{file}.json")) else { return };
        assert_eq!((reader.format(), rows.len(), reader.accounting().records), (Format::Otel, n, n as u64), "{file}");
        let mut named: Vec<&str> = rows.iter().map(|r| reader.names().text(r.session.unwrap())).collect();
        named.dedup();
        assert_eq!(named, sessions, "{file}");
        assert!(rows.iter().all(|r| more(r).answer.is_some() && r.took.is_some()), "{file}");
    }
    let Some((rows, _)) = real("otel-traces/simple_chain.json") else { return };
    assert_eq!(rows.iter().map(|r| said(r).len()).collect::<Vec<_>>(), [1, 3, 5]);
    assert_eq!(rows[1].at.unwrap() - rows[0].at.unwrap(), 3_000_000_000);
    assert_eq!(rows[0].took, Some(Dur::from_ms(2500)));
    let Some((rows, reader)) = real("otel-traces/prefix_sharing_example.json") else { return };
    let lengths: Vec<_> = rows.iter().take(4).map(|r| (r.input, r.output)).collect();
    let want = [(50, 20), (45, 15), (100, 50), (180, 60)].map(|(i, o)| (Some(i), Some(o)));
    assert_eq!(lengths, want);
    assert_eq!(reader.names().text(more(&rows[3]).parent.unwrap()), "span_conv_turn1");
}

#[test]
fn otlp_json_is_read_and_tools_are_no_requests() {
    let attribute = |key: &str, kind: &str, value: &str| format!(r#"{{"key":"{key}","value":{{"{kind}":{value}}}}}"#);
    let chat = [
        attribute("gen_ai.operation.name", "stringValue", "\"chat\""),
        attribute("gen_ai.request.model", "stringValue", "\"m\""),
        attribute("gen_ai.conversation.id", "stringValue", "\"c7\""),
        attribute("gen_ai.usage.input_tokens", "intValue", "\"31\""),
        attribute("gen_ai.usage.output_tokens", "intValue", "4"),
    ];
    let tool = [attribute("gen_ai.operation.name", "stringValue", "\"execute_tool\"")];
    let span = |id: &str, attributes: &str, code: u32| {
        format!(
            r#"{{"traceId":"t","spanId":"{id}","startTimeUnixNano":"1700000000000000001","endTimeUnixNano":"1700000000500000001","attributes":[{attributes}],"status":{{"code":{code}}}}}"#
        )
    };
    let text = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{},{}]}}]}}]}}"#,
        span("a", &chat.join(","), 2),
        span("b", &tool.join(","), 0)
    );
    let (rows, reader) = rows_of(&text, &Options::default());
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.at, row.took), (Some(1_700_000_000_000_000_001), Some(Dur::from_ms(500))));
    assert_eq!((row.input, row.output, row.ok), (Some(31), Some(4), Some(false)));
    assert_eq!(reader.names().text(row.session.unwrap()), "c7");
    assert_eq!(reader.accounting().dropped[&Drop::NotARequest].first_row, 2);
}

#[test]
fn questions_are_asked_turn_by_turn() {
    let Some((rows, reader)) = real("mt-bench/question.first40.jsonl") else { return };
    assert_eq!((reader.format(), reader.accounting().records, rows.len()), (Format::Questions, 40, 80));
    let chars: usize = rows.iter().map(|r| said(r)[0].content.chars().count()).sum();
    assert_eq!(chars, 13_098);
    assert_eq!((more(&rows[1]).turn, rows[0].session), (Some(2), rows[1].session));
    assert_eq!(reader.names().text(rows[0].class.unwrap()), "writing");
    // SpecBench has the same fields, with one turn for most categories.
    let (rows, _) =
        rows_of(r#"{"question_id": 161, "category": "translation", "turns": ["Translate …"]}"#, &Options::default());
    assert_eq!(rows.len(), 1);
}

#[test]
fn openai_conversations_give_every_answer() {
    let Some((rows, reader)) = real("openai-messages/kto_en_demo.first100.json") else { return };
    assert_eq!((reader.format(), reader.accounting().records, rows.len()), (Format::OpenAiMessages, 100, 163));
    let answers: usize = rows.iter().map(|r| more(r).answer.as_ref().unwrap().chars().count()).sum();
    assert_eq!(answers, 223_551);
    let tools = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "42"},
        {"role": "assistant", "content": "done"}]}"#;
    let (rows, _) = rows_of(tools, &Options::default());
    assert_eq!(said(&rows[0]).iter().map(|m| &*m.role).collect::<Vec<_>>(), ["system", "user"]);
    assert_eq!(more(&rows[0]).answer.as_deref(), Some(r#"[{"id": "1"}]"#));
    assert_eq!((&*said(&rows[1])[0].role, more(&rows[1]).answer.as_deref()), ("tool", Some("done")));
}

#[test]
fn a_map_of_columns_reads_any_table_and_any_lines() {
    let map = columns(&[
        ("time", "when"),
        ("unit", "ms"),
        ("input", "n_in"),
        ("output", "n_out"),
        ("session", "conv"),
        ("client", "tenant"),
        ("model", "m"),
        ("class", "kind"),
    ]);
    let options = Options { columns: Some(map), ..Options::default() };
    let csv = "kind,when,n_out,conv,tenant,m,n_in\nchat,12.5,7,c1,acme,gpt,100\n,13,8,,,,200\nchat,x,1,c1,a,b,1\n";
    let lines = r#"{"kind":"chat","when":12.5,"n_out":7,"conv":"c1","tenant":"acme","m":"gpt","n_in":100}
{"when":"13","n_out":8,"n_in":200,"conv":null}
{"when":"x","n_out":1,"n_in":1}"#;
    let read = |text: &str| {
        let (rows, reader) = rows_of(text, &options);
        assert_eq!(reader.format(), Format::Custom);
        assert_eq!(reader.accounting().dropped[&Drop::BadTime].first_row, 3);
        let name = |n: Option<tailbound_trace::Name>| n.map(|n| reader.names().text(n).to_owned());
        let plain = |r: &Row| (r.at, r.input, r.output, [r.session, r.client, r.model, r.class].map(name));
        rows.iter().map(plain).collect::<Vec<_>>()
    };
    let want = ["c1", "acme", "gpt", "chat"].map(|s| Some(s.to_owned()));
    assert_eq!(
        read(csv),
        [
            (Some(12_500_000), Some(100), Some(7), want),
            (Some(13_000_000), Some(200), Some(8), [None, None, None, None])
        ]
    );
    assert_eq!(read(csv), read(lines));
    let missing = Options { columns: Some(columns(&[("input", "tokens")])), ..Options::default() };
    let refused = tailbound_trace::read("made", Cursor::new(csv), &missing).err().unwrap().to_string();
    assert!(refused.contains("tokens") && refused.contains("n_in"), "{refused}");
}

#[test]
fn units_are_read_exactly() {
    for (unit, text, ns) in [
        (Unit::Seconds, "1.000000001", 1_000_000_001),
        (Unit::Millis, "1.5", 1_500_000),
        (Unit::Micros, "2", 2000),
        (Unit::Nanos, "7", 7),
        (Unit::Date, "1970-01-01 00:00:01.5", 1_500_000_000),
    ] {
        let map = Columns { time: Some("t".into()), unit, input: Some("n".into()), ..Columns::default() };
        let (rows, _) = rows_of(&format!("t,n\n{text},1\n"), &Options { columns: Some(map), ..Options::default() });
        assert_eq!(rows[0].at, Some(ns), "{unit:?}");
    }
}

#[test]
fn tables_of_known_formats_may_be_json_lines() {
    let azure = r#"{"TIMESTAMP":"2023-11-16 18:15:46.6805900","ContextTokens":374,"GeneratedTokens":44}
{"TIMESTAMP":"2023-11-16 18:15:47","ContextTokens":396,"GeneratedTokens":109}"#;
    let (rows, reader) = rows_of(azure, &Options::default());
    assert_eq!((reader.format(), reader.clock()), (Format::AzureLlm, Clock::Wall));
    assert_eq!(
        rows.iter().map(|r| (r.input, r.output)).collect::<Vec<_>>(),
        [(Some(374), Some(44)), (Some(396), Some(109))]
    );
    assert_eq!(rows[1].at.unwrap() - rows[0].at.unwrap(), 319_410_000);
    let burst = r#"[{"Log Type":"API log","Timestamp":5,"Request tokens":472,"Response tokens":18.0,"Total tokens":490,"Session ID":null},
        {"Log Type":"API log","Timestamp":6,"Request tokens":-1,"Response tokens":1}, {"Timestamp":7}]"#;
    let (rows, reader) = rows_of(burst, &Options::default());
    assert_eq!((reader.format(), rows.len()), (Format::BurstGpt, 1));
    assert_eq!((rows[0].at, rows[0].session, rows[0].output), (Some(5_000_000_000), None, Some(18)));
    assert_eq!(reader.accounting().dropped[&Drop::Negative].first_row, 2);
    assert_eq!(reader.accounting().dropped[&Drop::NotANumber].first_row, 3);
}

#[test]
fn compressed_files_are_read_as_they_are() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";
    let packed = zstd::encode_all(text.as_bytes(), 3).unwrap();
    let trace = Trace::collect(read("azure.csv.zst", Cursor::new(packed), &Options::default()).unwrap()).unwrap();
    assert_eq!((trace.rows.len(), trace.rows[0].input), (1, Some(374)));
    let mut broken = zstd::encode_all(text.repeat(1000).as_bytes(), 3).unwrap();
    broken.truncate(broken.len() / 2);
    let reader = read("azure.csv.zst", Cursor::new(broken), &Options::default());
    let ended = reader.and_then(|r| r.collect::<Result<Vec<_>, _>>());
    assert!(ended.is_err(), "a cut file is no shorter trace");
}
