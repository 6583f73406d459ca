//! Against golden vectors and events captured from a real vLLM; what is missing here is not part of the repository.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use serde_json::Value;
use tailbound_kv::published::{fnv_cbor, sha256_cbor};
use tailbound_kv::vllm::{self, Event};
use tailbound_kv::{Encoding, encode};
use tailbound_testdata::read;

fn vectors() -> Option<Value> {
    Some(serde_json::from_str(&read("gateways/hash_vectors.json")?).unwrap())
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    text.trim().as_bytes().chunks(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn tokens() -> Vec<u32> {
    (1..=32).collect()
}

#[test]
fn sha256_of_cbor_is_vllms() {
    let Some(v) = vectors() else { return };
    let v = &v["vllm_sha256_cbor"];
    let none = sha256_cbor::none_hash("42");
    let first = sha256_cbor::block(&none, &tokens()[..16], &[]);
    let second = sha256_cbor::block(&first, &tokens()[16..], &[]);
    assert_eq!(hex(&none), v["none_hash"]);
    assert_eq!(hex(&first), v["blocks"][0]);
    assert_eq!(hex(&second), v["blocks"][1]);
    assert_eq!(hex(&sha256_cbor::block(&none, &tokens()[..16], &["my-lora"])), v["block0_lora_my-lora"]);
    assert_eq!(sha256_cbor::short(&first), v["int64_of_block0_last8_be"].as_u64().unwrap());
}

#[test]
fn fnv_of_cbor_is_llmds() {
    let Some(v) = vectors() else { return };
    let v = &v["llmd_fnv1a64_cbor_2025_12"];
    let init = fnv_cbor::init("42");
    let first = fnv_cbor::block(init, &tokens()[..16], &[]);
    assert_eq!(init, v["init"].as_u64().unwrap());
    assert_eq!(first, v["blocks"][0].as_u64().unwrap());
    assert_eq!(fnv_cbor::block(first, &tokens()[16..], &[]), v["blocks"][1].as_u64().unwrap());
}

#[test]
fn both_encodings_say_the_same() {
    let Some(v) = vectors() else { return };
    let decode = |name: &str| vllm::decode(&unhex(v[name].as_str().unwrap())).unwrap();
    let (array, map) = (decode("kv_event_batch_array_hex"), decode("kv_event_batch_map_hex"));
    assert_eq!(array.events, map.events);
    assert_eq!((array.ts, map.ts), (1.5, 1.5));
    let Event::Stored(stored) = &array.events[0] else { panic!("{array:?}") };
    assert_eq!(stored.hashes, [v["vllm_sha256_cbor"]["int64_of_block0_last8_be"].as_u64().unwrap()]);
    assert_eq!(stored.tokens, &tokens()[..16]);
    assert_eq!((stored.block_size, stored.medium.as_deref()), (16, Some("GPU")));
}

#[test]
fn every_prefix_of_a_batch_is_refused() {
    let Some(v) = vectors() else { return };
    let whole = unhex(v["kv_event_batch_map_hex"].as_str().unwrap());
    for cut in 0..whole.len() {
        assert!(vllm::decode(&whole[..cut]).is_err(), "{cut} of {} bytes", whole.len());
    }
}

/// What a real vLLM 0.32 sent, read and written again, is the same to the byte.
#[test]
fn captured_events_are_written_as_vllm_wrote_them() {
    for size in ["32", "128"] {
        let Some(frames) = read(&format!("engines/vllm/kvevents_bs{size}.frames.hex")) else { return };
        for frame in frames.lines() {
            let payload = frame.split(' ').nth(2).unwrap();
            let batch = vllm::decode(&unhex(payload)).unwrap();
            assert_eq!(hex(&encode(&batch, Encoding::Events)), payload);
        }
    }
}

#[test]
fn every_encoding_is_read_back() {
    let Some(v) = vectors() else { return };
    for name in ["kv_event_batch_array_hex", "kv_event_batch_map_hex"] {
        let mut batch = vllm::decode(&unhex(v[name].as_str().unwrap())).unwrap();
        batch.dp_rank = Some(3);
        batch
            .events
            .push(Event::Removed(vllm::Removed { hashes: vec![0, 127, 128, 70_000, u64::MAX], ..Default::default() }));
        batch.events.push(Event::Cleared);
        for encoding in [Encoding::Arrays, Encoding::Events, Encoding::Maps] {
            assert_eq!(vllm::decode(&encode(&batch, encoding)).unwrap(), batch, "{encoding:?}");
        }
    }
}

/// The frames as a real vLLM 0.32 sent them, against what its own decoder made of them.
#[test]
fn captured_events_are_what_vllm_says_they_are() {
    for size in ["32", "128"] {
        let Some(frames) = read(&format!("engines/vllm/kvevents_bs{size}.frames.hex")) else { return };
        let Some(decoded) = read(&format!("engines/vllm/kvevents_bs{size}.decoded.jsonl")) else { return };
        let mut seen = 0;
        for (frame, said) in frames.lines().zip(decoded.lines()) {
            let batch = vllm::decode(&unhex(frame.split(' ').nth(2).unwrap())).unwrap();
            let said: Value = serde_json::from_str(said).unwrap();
            let said = &said["payload"];
            assert_eq!(batch.ts, said[0].as_f64().unwrap());
            assert_eq!(batch.dp_rank.map(u64::from), said[2].as_u64());
            for (event, said) in batch.events.iter().zip(said[1].as_array().unwrap()) {
                seen += 1;
                match event {
                    Event::Stored(s) => {
                        assert_eq!(said["type"], "BlockStored");
                        assert_eq!(serde_json::json!(s.hashes), said["block_hashes"]);
                        assert_eq!(serde_json::json!(s.parent), said["parent_block_hash"]);
                        assert_eq!(serde_json::json!(s.tokens), said["token_ids"]);
                        assert_eq!(serde_json::json!(s.block_size), said["block_size"]);
                        assert_eq!(serde_json::json!(s.group), said["group_idx"]);
                        let extra = said["extra_keys"].as_array().unwrap();
                        let extra: Vec<Vec<String>> =
                            extra.iter().map(|e| serde_json::from_value(e.clone()).unwrap_or_default()).collect();
                        assert_eq!(s.extra_keys, extra);
                    }
                    Event::Cleared => assert_eq!(said["type"], "AllBlocksCleared"),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(seen >= 3, "{seen} events of block size {size}");
    }
}
