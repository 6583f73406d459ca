use crate::replica::Scrape;
use tailbound_kv::vllm::Batch;

/// What is on its way to the router.
pub(super) enum Letter {
    Signals(u32, Scrape),
    Kv(u32, u64, Batch),
}

/// Letters on their way, by place.
#[derive(Default)]
pub(super) struct Mail {
    letters: Vec<Option<Letter>>,
    free: Vec<u32>,
}

impl Mail {
    pub(super) fn put(&mut self, letter: Letter) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.letters[place as usize] = Some(letter);
                place
            }
            None => {
                self.letters.push(Some(letter));
                self.letters.len() as u32 - 1
            }
        }
    }

    pub(super) fn take(&mut self, place: u32) -> Option<Letter> {
        self.free.push(place);
        self.letters[place as usize].take()
    }
}
