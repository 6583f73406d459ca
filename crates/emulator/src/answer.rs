//! What is said: short common words, fixed by the request's content, whose text takes exactly the tokens it was made of.

use tailbound_clock::Seed;

use crate::builtin;
use crate::error::EmulatorError;
use crate::tokenizer::Tokenizer;

const WORDS: &str = "a able about above across act add after again age ago air all along also always am an and animal answer any \
apart are area arm around art as ask at away baby back bad ball bank base be bear beat bed been before began behind best better \
big bird bit black blue board boat body bone book born both bottom box boy branch bread break bring broad broke brown build burn \
busy but buy by call came camp can car card care carry case cat catch cause cell center chair chance chart check child choose \
circle city class clean clear climb clock close cloud coast coat cold color come common cook cool copy corn corner cost could \
count cover cow create crop cross crowd cry current cut dance dark day dead deal dear decide deep desert design did die differ \
dish do doctor dog dollar done door double down draw dream dress drink drive drop dry duck during each ear early earth ease east \
eat edge effect egg eight either else end enemy energy engine enough enter equal even event ever every exact eye face fact fair \
fall family famous far farm fast father favor fear feed feel feet fell felt few field fig fight figure fill final find fine \
finger finish fire first fish fit five flat floor flow flower fly follow food foot for force forest form four fraction free \
fresh friend from front fruit full fun game garden gas gather gave get girl give glad glass go gold gone good got govern grand \
grass gray great green grew ground group grow guess guide gun had hair half hand happen happy hard has hat have he head hear \
heart heat heavy held help her here high hill him his hit hold hole home hope horse hot hour house how huge human hundred hunt";

/// Every possible token of an answer: its id and its text, which begins with a space and needs no escape in JSON.
pub(crate) struct Lexicon {
    ids: Vec<u32>,
    texts: Vec<Box<str>>,
}

impl Lexicon {
    /// The one whose tokens `tokenizer` takes one each.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Result<Lexicon, EmulatorError> {
        match tokenizer {
            Tokenizer::Builtin => Ok(Lexicon::builtin()),
            Tokenizer::File(_) => Lexicon::known_to(tokenizer),
        }
    }

    /// Those of our words that are one token of a file's tokenizer.
    fn known_to(tokenizer: &Tokenizer) -> Result<Lexicon, EmulatorError> {
        let mut lexicon = Lexicon { ids: Vec::new(), texts: Vec::new() };
        for word in WORDS.split(' ') {
            let text = format!(" {word}");
            // Between two others, since some tokenizers treat the beginning of a text differently.
            let ids = tokenizer.encode(&format!(" the{text} the"), false)?;
            if let [_, id, _] = ids[..] {
                lexicon.ids.push(id);
                lexicon.texts.push(text.into());
            }
        }
        if lexicon.texts.len() < 16 {
            let what = "this tokenizer has too few of the emulator's words as single tokens; use the built-in one";
            return Err(EmulatorError::Config(what.to_owned()));
        }
        Ok(lexicon)
    }

    /// The built-in one. Words of more than six letters, which would be two tokens, are left out.
    pub(crate) fn builtin() -> Lexicon {
        let mut lexicon = Lexicon { ids: Vec::new(), texts: Vec::new() };
        let mut ids = Vec::new();
        for word in WORDS.split(' ') {
            ids.clear();
            let text = format!(" {word}");
            builtin::encode(&text, &mut ids);
            if let [id] = ids[..] {
                lexicon.ids.push(id);
                lexicon.texts.push(text.into());
            }
        }
        lexicon
    }

    /// The text of the `index`-th token of the answer drawn from `seed`.
    pub(crate) fn text(&self, seed: u64, index: u32) -> &str {
        &self.texts[self.place(seed, index)]
    }

    /// Its id.
    pub(crate) fn id(&self, seed: u64, index: u32) -> u32 {
        self.ids[self.place(seed, index)]
    }

    fn place(&self, seed: u64, index: u32) -> usize {
        // SplitMix64 by counter: any token costs a few multiplications, so no answer is kept in memory.
        let mut z = seed.wrapping_add(u64::from(index).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * self.texts.len() as u128) >> 64) as usize
    }
}

/// The seed of the answer to this prompt: the same prompt (and `seed` parameter) is answered the same way.
pub(crate) fn seed_of(prompt: &[u32], asked: Option<i64>, server: Seed) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ server.0;
    let mut mix = |word: u64| hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    prompt.iter().for_each(|&id| mix(u64::from(id)));
    mix(prompt.len() as u64);
    if let Some(asked) = asked {
        mix(asked as u64 ^ 0x5eed);
    }
    hash
}

/// How long answers are when nobody says `ignore_eos`. The length is drawn per request, fixed by its content, and cut at
/// `max_tokens`; an answer that was not cut ends with an end-of-text token, which is counted and has no text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerLength {
    /// Always up to the limit.
    Limit,
    /// This many tokens.
    Fixed(u32),
    /// Evenly between the two, both included.
    Uniform {
        /// Fewest.
        low: u32,
        /// Most.
        high: u32,
    },
    /// Log-normal: many short ones and a long tail, as people's conversations have.
    LogNormal {
        /// Half are longer.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl AnswerLength {
    /// What real conversations look like: half the answers longer than 180 tokens, a tenth longer than 390.
    pub const CHAT: AnswerLength = AnswerLength::LogNormal { median: 180.0, sigma: 0.6 };

    /// The length of the answer drawn from `seed`: at least one token.
    pub(crate) fn draw(self, seed: u64) -> u32 {
        let mut rng = Seed(seed).stream("answer length");
        match self {
            AnswerLength::Limit => u32::MAX,
            AnswerLength::Fixed(n) => n.max(1),
            AnswerLength::Uniform { low, high } => rng.between(u64::from(low.min(high)), u64::from(high)).max(1) as u32,
            AnswerLength::LogNormal { median, sigma } => {
                (median * (sigma * rng.normal()).exp()).clamp(1.0, f64::from(u32::MAX)) as u32
            }
        }
    }

    pub(crate) fn fault(self) -> Option<&'static str> {
        match self {
            AnswerLength::Fixed(0) => Some("a fixed answer length must be at least 1"),
            AnswerLength::Uniform { low, high } if low > high || high == 0 => {
                Some("a uniform answer length needs 0 <= low <= high and high >= 1")
            }
            AnswerLength::LogNormal { median, sigma }
                if !(median >= 1.0 && median.is_finite() && sigma >= 0.0 && sigma.is_finite()) =>
            {
                Some("a log-normal answer length needs a median of at least 1 and a sigma of at least 0")
            }
            _ => None,
        }
    }
}

impl std::str::FromStr for AnswerLength {
    type Err = String;

    /// `max`, `chat`, `64` or `fixed:64`, `uniform:20:200`, `lognormal:180:0.6`.
    fn from_str(text: &str) -> Result<AnswerLength, String> {
        let bad = || {
            format!("answer length {text:?} is none of max, chat, N, fixed:N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA")
        };
        let parts: Vec<&str> = text.split(':').collect();
        let whole = |s: &str| s.parse::<u32>().map_err(|_| bad());
        let real = |s: &str| s.parse::<f64>().map_err(|_| bad());
        let length = match parts[..] {
            ["max"] => AnswerLength::Limit,
            ["chat"] => AnswerLength::CHAT,
            ["fixed", n] | [n] => AnswerLength::Fixed(whole(n)?),
            ["uniform", low, high] => AnswerLength::Uniform { low: whole(low)?, high: whole(high)? },
            ["lognormal", median, sigma] => AnswerLength::LogNormal { median: real(median)?, sigma: real(sigma)? },
            _ => return Err(bad()),
        };
        match length.fault() {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_made_of_the_tokens_its_text_takes() {
        let lexicon = Lexicon::builtin();
        assert!(lexicon.texts.len() > 300, "{}", lexicon.texts.len());
        let seed = seed_of(&[1, 2, 3], None, Seed(0));
        let text: String = (0..500).map(|i| lexicon.text(seed, i)).collect();
        let ids: Vec<u32> = (0..500).map(|i| lexicon.id(seed, i)).collect();
        let mut again = Vec::new();
        builtin::encode(&text, &mut again);
        assert_eq!(again, ids);
        assert!(!text.contains(['"', '\\']));
    }

    #[test]
    fn the_answer_depends_on_prompt_and_seed_alone() {
        assert_eq!(seed_of(&[1, 2], Some(3), Seed(0)), seed_of(&[1, 2], Some(3), Seed(0)));
        let others = [
            seed_of(&[1, 2], None, Seed(0)),
            seed_of(&[2, 1], Some(3), Seed(0)),
            seed_of(&[1, 2], Some(4), Seed(0)),
            seed_of(&[1, 2], Some(3), Seed(1)),
            seed_of(&[1, 2, 0], Some(3), Seed(0)),
        ];
        assert!(others.iter().all(|&s| s != seed_of(&[1, 2], Some(3), Seed(0))));
    }

    #[test]
    fn lengths_follow_their_law() {
        let draw = |law: AnswerLength| -> Vec<u32> { (0..4000).map(|s| law.draw(s)).collect() };
        assert!(draw(AnswerLength::Fixed(7)).iter().all(|&n| n == 7));
        let uniform = draw(AnswerLength::Uniform { low: 3, high: 6 });
        assert!((3..=6).all(|n| uniform.iter().filter(|&&m| m == n).count() > 850));
        assert!(uniform.iter().all(|n| (3..=6).contains(n)));
        let mut chat = draw(AnswerLength::CHAT);
        chat.sort_unstable();
        assert!((165..195).contains(&chat[2000]), "{}", chat[2000]);
        assert!((350..430).contains(&chat[3600]), "{}", chat[3600]);
    }

    #[test]
    fn lengths_are_read_from_flags() {
        assert_eq!("max".parse(), Ok(AnswerLength::Limit));
        assert_eq!("64".parse(), Ok(AnswerLength::Fixed(64)));
        assert_eq!("uniform:20:200".parse(), Ok(AnswerLength::Uniform { low: 20, high: 200 }));
        assert_eq!("lognormal:180:0.6".parse(), Ok(AnswerLength::CHAT));
        for bad in ["", "0", "uniform:5", "uniform:6:5", "lognormal:0:1", "lognormal:nan:1", "fixed:-1", "zipf:3"] {
            assert!(bad.parse::<AnswerLength>().is_err(), "{bad}");
        }
    }
}
