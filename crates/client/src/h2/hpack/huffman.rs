//! The Huffman code of RFC 7541, appendix B.
//!
//! It is canonical: codes of one length follow one another in the order of their symbols, and a longer code begins where the shorter
//! ones have left off. So the lengths alone say everything.

/// The length of each symbol's code in bits; the last is the end's.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

/// Not a symbol: the end of a string, which must never come.
const END: u16 = 256;
const LONGEST: usize = 30;
static TABLE: Table = Table::new();

struct Table {
    /// The first code of each length, and how many there are.
    first: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    /// Where the symbols of each length begin in `symbols`.
    from: [u16; LONGEST + 1],
    symbols: [u16; 257],
}

impl Table {
    const fn new() -> Table {
        let mut table =
            Table { first: [0; LONGEST + 1], count: [0; LONGEST + 1], from: [0; LONGEST + 1], symbols: [0; 257] };
        let (mut code, mut sorted) = (0, 0);
        let mut length = 1;
        while length <= LONGEST {
            code <<= 1;
            table.first[length] = code;
            table.from[length] = sorted as u16;
            let mut symbol = 0;
            while symbol < LENGTHS.len() {
                if LENGTHS[symbol] as usize == length {
                    table.symbols[sorted] = symbol as u16;
                    sorted += 1;
                    code += 1;
                }
                symbol += 1;
            }
            table.count[length] = code - table.first[length];
            length += 1;
        }
        table
    }

    /// The symbol at the front of the last `bits` bits of `bytes`, with its length.
    fn symbol(&self, bytes: u64, bits: usize) -> Option<(u16, usize)> {
        (5..=bits.min(LONGEST)).find_map(|length| {
            let code = (bytes >> (bits - length)) as u32 & ((1 << length) - 1);
            let nth = code.checked_sub(self.first[length]).filter(|&nth| nth < self.count[length])?;
            Some((self.symbols[usize::from(self.from[length]) + nth as usize], length))
        })
    }
}

/// Appends what `coded` stands for to `out`.
///
/// # Errors
/// What is not a code, or padding that is not the front of the end's code.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let (mut bytes, mut bits) = (0u64, 0);
    for &byte in coded {
        bytes = bytes << 8 | u64::from(byte);
        bits += 8;
        while let Some((symbol, length)) = TABLE.symbol(bytes, bits) {
            if symbol == END {
                return Err("a string with the code of its end in it");
            }
            out.push(symbol as u8);
            bits -= length;
        }
        if bits >= LONGEST {
            return Err("a string with an unknown code");
        }
    }
    let padding = (1 << bits) - 1;
    if bits > 7 || bytes & padding != padding {
        return Err("a string that is wrongly padded");
    }
    Ok(())
}
