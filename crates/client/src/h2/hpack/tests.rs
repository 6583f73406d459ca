use super::*;
use proptest::prelude::*;

type Field = (String, String);

fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, Wrong> {
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.push((text(name), text(value)));
        Ok::<(), Wrong>(())
    })?;
    Ok(fields)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn fields(lines: &[&str]) -> Vec<Field> {
    let field = |line: &&str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    lines.iter().map(field).collect()
}

#[test]
fn numbers_of_rfc_7541_c_1() {
    for (value, prefix, coded) in [(10, 5, "0a"), (1337, 5, "1f9a0a"), (42, 8, "2a")] {
        let mut out = Vec::new();
        put_integer(&mut out, 0, prefix, value);
        assert_eq!(out, bytes(coded));
        assert_eq!(integer(&mut &out[..], prefix), Ok(value));
    }
}

#[test]
fn single_fields_of_rfc_7541_c_2() {
    for (block, field, size) in [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header", 55),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0),
        ("82", ":method: GET", 0),
    ] {
        let mut decoder = Decoder::default();
        assert_eq!(read(&mut decoder, &bytes(block)), Ok(fields(&[field])));
        assert_eq!(decoder.table.size(), size);
    }
}

/// Three blocks on one connection, each with its fields and the size of the table after it.
fn connection(most: usize, blocks: [(&str, &[&str], usize); 3]) {
    let mut decoder = Decoder { table: Table::new(most), ..Decoder::default() };
    for (block, expected, size) in blocks {
        assert_eq!(read(&mut decoder, &bytes(block)), Ok(fields(expected)));
        assert_eq!(decoder.table.size(), size);
    }
}

#[test]
fn requests_of_rfc_7541_c_3_and_c_4() {
    let first = &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
    let second =
        &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"];
    let third = &[
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
    ];
    connection(
        TABLE_SIZE,
        [
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first, 57),
            ("8286 84be 5808 6e6f 2d63 6163 6865", second, 110),
            ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third, 164),
        ],
    );
    connection(
        TABLE_SIZE,
        [
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first, 57),
            ("8286 84be 5886 a8eb 1064 9cbf", second, 110),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third, 164),
        ],
    );
}

#[test]
fn responses_of_rfc_7541_c_5_and_c_6() {
    let first = &[
        ":status: 302",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ];
    let second = &[
        ":status: 307",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ];
    let third = &[
        ":status: 200",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:22 GMT",
        "location: https://www.example.com",
        "content-encoding: gzip",
        "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ];
    connection(
        256,
        [
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
                 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                first,
                222,
            ),
            ("4803 3330 37c1 c0bf", second, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
                 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
                 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                third,
                215,
            ),
        ],
    );
    connection(
        256,
        [
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
                 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                first,
                222,
            ),
            ("4883 640e ffc1 c0bf", second, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
                 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                third,
                215,
            ),
        ],
    );
}

#[test]
fn what_is_no_block_is_an_error() {
    for (block, says) in [
        ("80", "in no table"),
        ("be", "in no table"),
        ("7f 00 00", "in no table"),
        ("ff ff ff ff ff ff ff", "too large"),
        ("40", "ends within"),
        ("00 03 61", "ends within"),
        ("82 20", "after a field"),
        ("3f e2 1f", "larger table"),
        ("04 84 ff ff ff ff", "code of its end"),
        ("04 82 1f ff", "wrongly padded"),
        ("04 81 00", "wrongly padded"),
    ] {
        let said = read(&mut Decoder::default(), &bytes(block)).expect_err(block);
        assert!(said.contains(says), "{block}: {said}");
    }
}

#[test]
fn the_table_shrinks_when_it_is_told_to() {
    let mut decoder = Decoder::default();
    read(&mut decoder, &bytes("4001 6101 62 4001 6301 64")).unwrap();
    assert_eq!(decoder.table.size(), 68);
    assert_eq!(read(&mut decoder, &bytes("3f05 be")), Ok(fields(&["c: d"])));
    assert_eq!(decoder.table.size(), 34);
    assert!(read(&mut decoder, &bytes("20 be")).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read(list in proptest::collection::vec(("[a-z-]{1,40}", "[ -~]{0,300}", any::<bool>()), 0..20)) {
        let mut block = Vec::new();
        put_empty_table(&mut block);
        put_known(&mut block, known::POST);
        put_value(&mut block, known::PATH, b"/v1");
        for (name, value, secret) in &list {
            put_field(&mut block, name, value.as_bytes(), *secret);
        }
        let mut expected = fields(&[":method: POST", ":path: /v1"]);
        expected.extend(list.into_iter().map(|(name, value, _)| (name, value)));
        prop_assert_eq!(read(&mut Decoder::default(), &block), Ok(expected));
    }

    #[test]
    fn no_block_makes_it_panic_or_grow(blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..5)) {
        let mut decoder = Decoder::default();
        for block in blocks {
            let _ = read(&mut decoder, &block);
            prop_assert!(decoder.table.size() <= TABLE_SIZE);
        }
    }
}
