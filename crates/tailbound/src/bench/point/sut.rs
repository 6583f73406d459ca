//! The system under test: a server that was found, or the engine model.

use super::{Replica, Sample};
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::{Counter, Endpoint, Model, Reached, data};
use crate::emulate;
use crate::failure::Outcome;
use tailbound_engine::Profile;
use tailbound_prompt::{Counting, DataSet, Prompt, PromptSet};

/// The system under test.
pub enum Sut {
    /// A server, in real time.
    Server(Box<Reached>),
    /// The engine model, in virtual time.
    Model(Box<Modelled>),
}

/// The engine model in a server's place.
pub struct Modelled {
    /// What it stands for.
    pub model: Model,
    /// Its sizes and its step law.
    pub profile: &'static Profile,
    /// Who counts tokens: a tokenizer at hand, or nobody, and then a word is a token.
    pub counter: Counter,
    /// Where requests would go.
    endpoint: Endpoint,
}

impl Sut {
    /// The server the flags lead to, or the engine model of the profile so named.
    pub fn of(serve: &ServeArgs, profile: Option<&str>) -> Outcome<Sut> {
        let Some(profile) = profile else { return Ok(Sut::Server(Box::new(Reached::at(serve)?))) };
        let profile = emulate::profile(profile)?;
        let target = &serve.target;
        let name = target.model.clone().unwrap_or_else(|| profile.model.to_owned());
        let counter = match target.tokenizer.as_deref().filter(|_| !target.skip_tokenizer_init) {
            Some(name) => Counter::local(name)?,
            None => Counter::None,
        };
        let model = Model { name: name.clone(), id: name.clone(), root: name };
        Ok(Sut::Model(Box::new(Modelled { model, profile, counter, endpoint: Endpoint::from_args(target)? })))
    }

    /// The model it serves.
    pub fn model(&self) -> &Model {
        match self {
            Sut::Server(reached) => &reached.model,
            Sut::Model(modelled) => &modelled.model,
        }
    }

    /// Where requests go.
    pub fn endpoint(&self) -> &Endpoint {
        match self {
            Sut::Server(reached) => &reached.endpoint,
            Sut::Model(modelled) => &modelled.endpoint,
        }
    }

    /// Who counts tokens.
    pub fn counter(&self) -> &Counter {
        match self {
            Sut::Server(reached) => &reached.counter,
            Sut::Model(modelled) => &modelled.counter,
        }
    }

    /// Whether time is virtual and a word is a token.
    pub fn counts_words(&self) -> bool {
        matches!(self, Sut::Model(modelled) if modelled.counter.tokenizer().is_none())
    }

    /// The prompts of a data set, counted by who counts here.
    pub fn prompts(&self, serve: &ServeArgs, set: &DataSet, wanted: Option<u32>) -> Outcome<PromptSet> {
        if self.counts_words() {
            let count = |texts: &[&str], _: bool| -> Result<Vec<u32>, String> {
                Ok(texts.iter().map(|text| Sample::words(text)).collect())
            };
            return data::prompts(serve, set, wanted, Counting::Server(&count));
        }
        self.counter().with(|counting| data::prompts(serve, set, wanted, counting))
    }
}

impl Modelled {
    /// A fresh replica that answers these prompts.
    pub fn replica(&self, prompts: &[Prompt]) -> Outcome<Replica> {
        let samples = prompts.iter().map(|prompt| Sample::new(prompt, self.counter.tokenizer())).collect();
        Replica::new(self.profile.config(), samples)
    }
}
