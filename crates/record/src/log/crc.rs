/// CRC-32 (IEEE 802.3, reflected, as in zip and PNG).
pub(super) fn of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(super::of(b"123456789"), 0xCBF4_3926);
        assert_eq!(super::of(b""), 0);
    }
}
