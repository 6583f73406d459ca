//! `tailbound bench capacity`: flags → what is asked → one probe after another, each a run → the largest load that is borne → exit code.

pub mod args;
mod asked;
mod folder;
mod measure;
mod told;

use crate::bench::point::{self, Shape, Sut};
use crate::bench::serve::args::{Format, ServeArgs};
use crate::bench::serve::passes::{Passes, salted};
use crate::bench::serve::replay::{self, Outline};
use crate::bench::serve::{data, refused, requests};
use crate::bundle;
use crate::failure::{Failure, Outcome, exit};
use crate::{output, page_file};
use args::CapacityArgs;
use folder::Settings;
use measure::Search;
use std::path::Path;
use tailbound_prompt::PromptSet;
use tailbound_report::capacity::Found;
use tailbound_stats::capacity::{Answer, Probed, Spec, Step, Unit, next};
use tailbound_stats::fluidity::PrefillProfile;

/// Runs the command.
pub fn run(args: &CapacityArgs) -> Outcome<u8> {
    // What needs no server is judged first, so that a typing error costs nothing.
    let any = args.serve(Shape { requests: args.search.probe_requests, ..Shape::default() }, None);
    refused::check(&any)?;
    requests::extra(&args.payload)?;
    // Of a trace only its requests are taken: when they arrive is what is searched for.
    let replay = replay::read(&any)?;
    let outline = replay.as_ref().map(|replay| replay.outline.clone());
    let set = match &replay {
        Some(replay) => replay.data_set(&any)?,
        None => data::data_set(&args.data)?,
    };
    let spec = asked::spec(args, &asked::asked(args, outline.as_ref(), None)?)?;
    if args.report.dry_run {
        output::print(&dry_run(args, &spec))?;
        return Ok(0);
    }
    page_file::check(args.report.html.as_deref())?;
    let sut = Sut::of(&any, args.search.virtual_time.then_some(args.search.profile.as_str()))?;
    if sut.counts_words() {
        output::note("in virtual time a word is a token");
    }
    let wanted = u32::try_from(args.search.probe_requests).unwrap_or(u32::MAX);
    let mut prompts = sut.prompts(&any, &set, replay.is_none().then_some(wanted))?;
    prompts.notes.iter().for_each(|note| output::note(note));
    if !args.search.no_salt {
        prompts.prompts = salted(&prompts.prompts)?;
    }
    let before = args.report.output_dir.as_deref().map(Settings::read).transpose()?.flatten();
    let prefill = match (&before, args.asked.fluidity && args.asked.ttft_deadline.is_none()) {
        (_, false) => None,
        (Some(settings), true) => settings.prefill.map(|coefficients| PrefillProfile { coefficients }),
        (None, true) => Some(profile(args, &sut, &any)?),
    };
    let settings = Settings {
        argv: std::env::args().collect(),
        hash: folder::hash(args, &spec, &sut.model().id)?,
        model: sut.model().id.clone(),
        prefill: prefill.map(|p| p.coefficients),
    };
    begin(args, before, &settings)?;
    let asked = asked::asked(args, outline.as_ref(), prefill)?;
    let classes = outline.map_or(Vec::new(), |outline| classes(&outline, &prompts));
    let search = Search { args, asked, spec, sut, prompts, classes, dir: args.report.output_dir.clone() };
    let (answer, probes) = find(&search)?;
    let found = told::found(&search, &settings, &probes, &answer);
    if let Some(dir) = &search.dir {
        bundle::publish(dir, &[(bundle::RESULT, found.json())])?;
    }
    if let Some(file) = &args.report.html {
        page_file::write(file, &found.page())?;
    }
    output::print(&match args.report.format {
        Format::Text => told::text(&search, &settings, &probes, &answer),
        Format::Json => found.json(),
    })?;
    Ok(if args.report.no_fail { 0 } else { code(&found) })
}

/// Probes until there is an answer.
fn find(search: &Search<'_>) -> Outcome<(Answer, Vec<Probed>)> {
    let mut probes = Vec::new();
    loop {
        match next(&search.spec, &probes) {
            Step::Answer(answer) => return Ok((answer, probes)),
            Step::Probe(probe) => {
                let what = match search.spec.unit {
                    Unit::Rate => "requests/s",
                    Unit::Concurrency => "in flight",
                };
                eprintln!("probe {}: {:.4} {what}, up to {} requests", probe.number, probe.load, probe.requests);
                probes.push(search.probed(probe)?);
            }
        }
    }
}

/// Writes down what the search is, or makes sure that it is the one that was begun.
fn begin(args: &CapacityArgs, before: Option<Settings>, settings: &Settings) -> Outcome<()> {
    match (&args.report.output_dir, before) {
        (None, _) => Ok(()),
        (Some(dir), None) => settings.write(dir),
        (Some(_), Some(before)) if before.hash == settings.hash => Ok(()),
        (Some(dir), Some(_)) => Err(Failure::usage(format!("--output-dir {}: it holds another search", dir.display()))
            .hint("go on with the flags it was begun with (capacity.json has them), or name another folder")),
    }
}

/// The class of each prompt, where the trace tells any.
fn classes(outline: &Outline, prompts: &PromptSet) -> Vec<u16> {
    let mut classes = outline.classes.small();
    classes.truncate(prompts.prompts.len());
    classes
}

/// How long prompts take alone: etalon's lengths, 2^8 to 2^13, one request after another.
fn profile(args: &CapacityArgs, sut: &Sut, any: &ServeArgs) -> Outcome<PrefillProfile> {
    eprintln!(
        "a profile of the prefill, one request at a time, tells when first tokens are due (--ttft-deadline saves it)"
    );
    let mut measured = Vec::new();
    for n in (8..=13).map(|i| 1u32 << i) {
        let mut data = any.data.clone();
        data.dataset_name = "random".into();
        (data.random_input_len, data.random_output_len, data.dataset_path) = (Some(n), Some(2), None);
        let shape = Shape { requests: 3, concurrency: Some(1), warmups: 1, ..Shape::default() };
        let mut serve = args.serve(shape, None);
        serve.data = data;
        let prompts = sut.prompts(&serve, &data::data_set(&serve.data)?, Some(4))?;
        let asked = point::Asked {
            serve: &serve,
            prompts: &prompts,
            replay: None,
            passes: Some(Passes { order: vec![0, 1, 2], salt: None }),
            classes: &[],
            shape: None,
        };
        let alone = measure::alone(&point::run(sut, asked)?);
        // Longer ones may not fit into the model's context.
        if alone.is_empty() {
            break;
        }
        measured.extend(alone);
    }
    PrefillProfile::fit(&measured).ok_or_else(|| {
        Failure::new("failed to profile the prefill: fewer than three prompt lengths were answered")
            .hint("say when the first token is due: --ttft-deadline 1s")
    })
}

fn dry_run(args: &CapacityArgs, spec: &Spec) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| out += &format!("{name:<18} {value}\n");
    for r in &spec.requirements {
        line("asked", format!("{} in {} % of the requests", r.name, 100.0 * r.share));
    }
    let unit = if spec.unit == Unit::Rate { "requests/s" } else { "requests in flight" };
    match spec.expect {
        Some(load) => line("expected", format!("{load} {unit}")),
        None => line("first probe", format!("{} {unit}", spec.first)),
    }
    line("ends", format!("within {} % of the answer, at {} %", 100.0 * spec.precision, 100.0 * spec.confidence));
    line("takes", format!("at most {} requests in probes of at most {}", spec.budget, spec.probe_requests));
    line("data set", args.data.dataset_name.clone());
    out
}

/// By the answer: an expected load that is not borne, or none that is, misses the objectives; where it isn't known, nothing is proved.
fn code(found: &Found) -> u8 {
    match found.borne() {
        Some(true) => 0,
        Some(false) => exit::OBJECTIVE_MISSED,
        None => exit::INVALID,
    }
}

/// What a search's folder tells; `None` if it is not one of a search that has ended.
pub fn of_folder(dir: &Path) -> Outcome<Option<(Found, u8)>> {
    if !dir.join(folder::SETTINGS).is_file() {
        return Ok(None);
    }
    let path = dir.join(bundle::RESULT);
    let failed = |why: String| Failure::new(format!("failed to read {}: {why}", path.display()));
    let bytes = std::fs::read(&path).map_err(|e| {
        failed(e.to_string()).hint("the search did not come to its end; its command, in capacity.json, goes on with it")
    })?;
    let found: Found = serde_json::from_slice(&bytes).map_err(|e| failed(e.to_string()))?;
    let code = code(&found);
    Ok(Some((found, code)))
}
