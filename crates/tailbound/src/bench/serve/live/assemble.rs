//! From rows to a run: the same whether it has just ended or is read back from its folder.

use super::{Ending, Gathered, Names, Ran};
use crate::bench::scenario::file::Phased;
use crate::bench::scenario::thresholds::Watcher;
use crate::bench::serve::args::ServeArgs;
use crate::bench::serve::replay::Outline;
use crate::bench::serve::{judge, requests, target};
use crate::failure::Outcome;
use crate::server_metrics;
use tailbound_clock::{Dur, Time};
use tailbound_record::{Moment, Row, StampSource};
use tailbound_report::{Description, Extras, Grouping, RateChange};
use tailbound_stats::servers::Servers;
use tailbound_stats::{ClientHealth, Group, RunFacts, by_group};
use tailbound_workload::{IntentId, Plan, Stage};

/// From rows to a run: the same whether it has just ended or is read back from its folder. Without an ending it was cut off.
pub fn assemble(
    args: &ServeArgs,
    plan: &Plan,
    mut facts: RunFacts,
    names: &Names,
    gathered: Gathered,
    ending: Option<Ending>,
) -> Outcome<Ran> {
    let cut_off = ending.is_none();
    let ending = ending.unwrap_or_default();
    let Gathered { rows, scrapes } = gathered;
    // Servers know no warm-ups and probes from the rest.
    let ttfts: Vec<Dur> = rows.iter().filter_map(Row::ttft).collect();
    let (mut measured, probes) = part(rows, plan);
    name_classes(&mut measured, names.replay.as_ref());
    let phased = args.load.phased.as_deref();
    if let Some(phased) = phased {
        name_phases(&mut measured, plan, phased);
    }
    facts.start = ending.origin_ns.map(Time).or_else(|| origin(&measured, plan)).unwrap_or(Time(names.anchor.0));
    facts.end = measured.iter().filter_map(judge::ended).max().unwrap_or(facts.start).max(facts.start);
    facts.interrupted = ending.interrupted || cut_off;
    facts.output_forced = requests::forced(args, names.replay.as_ref());
    facts.prompt_lengths_exact = names.lengths_exact;
    facts.templated = names.templated;
    let mut groups = groups(&measured, &facts, names.replay.as_ref());
    let mut notes = ending.notes;
    let mut thresholds = Vec::new();
    if let Some(phased) = phased {
        groups.extend(by_phase(&measured, &facts, plan, phased));
        let mut watcher = Watcher::new(phased, plan);
        measured.iter().for_each(|row| drop(watcher.row(row)));
        thresholds = watcher.judgements();
        notes.extend(thresholds.iter().map(|judged| judged.sentence.clone()));
    }
    let description = Description {
        date: names.date(facts.end).compact(),
        backend: args.target.backend.clone(),
        label: args.report.label.clone(),
        model_id: names.model_id.clone(),
        tokenizer_id: names.tokenizer_id.clone(),
        max_model_len: args.data.max_model_len,
        protocol: (!modelled(&measured)).then_some(if args.client.http2 { "HTTP/2" } else { "HTTP/1.1" }),
        num_prompts: names.num_prompts,
        metadata: metadata(args)?,
    };
    let changes = plan.rps_changes().into_iter().map(|change| RateChange {
        rps: u64::from(change.rps),
        timestamp: names.date(facts.start + change.at).to_string(),
    });
    let servers = Servers::new(&scrapes, &ttfts, facts.start, facts.end);
    let extras = Extras {
        probes: judge::probes(&probes),
        rate_changes: changes.collect(),
        spec_decode: servers.as_ref().and_then(server_metrics::spec_decode),
        servers,
        thresholds,
        trace: names.replay.as_ref().map(|r| r.account.clone()),
        groups,
        ..Extras::default()
    };
    let health = ClientHealth {
        lateness_ns: ending.lateness_ns,
        probe_noise_ns: ending.probe_noise_ns,
        cpu_share: ending.cpu_share,
        reader_late_p99_ns: ending.reader_late_p99_ns,
        fd_limit_hit: ending.fd_limit_hit,
        ..ClientHealth::default()
    };
    Ok(Ran {
        facts,
        rows: measured,
        health,
        description,
        extras,
        notes,
        terminated: ending.terminated,
        plan: plan.hash().to_string(),
    })
}

/// A row that was never sent doesn't know its class.
fn name_classes(rows: &mut [Row], replay: Option<&Outline>) {
    let Some(classes) = replay.map(|replay| replay.classes.small()) else { return };
    for row in rows {
        row.class = classes.get(row.id as usize).copied().unwrap_or(row.class);
    }
}

/// The same of a load of phases.
fn name_phases(rows: &mut [Row], plan: &Plan, phased: &Phased) {
    let Some(phases) = plan.phases() else { return };
    for row in rows {
        let class = phases.of(IntentId(row.id as u32)).and_then(|phase| phased.class_of.get(phase));
        row.class = class.copied().unwrap_or(row.class);
    }
}

/// The requests by phase and by class, where there is more than one of them.
fn by_phase(rows: &[Row], facts: &RunFacts, plan: &Plan, phased: &Phased) -> Vec<Grouping> {
    let Some(phases) = plan.phases() else { return Vec::new() };
    let phase = |row: &Row| phases.of(IntentId(row.id as u32));
    let class = |row: &Row| phase(row).and_then(|p| phased.class_of.get(p)).map(|&class| usize::from(class));
    let names: Vec<String> = phases.names().map(str::to_owned).collect();
    let mut told = Vec::new();
    if phased.classes.len() > 1 {
        told.push(grouped("class", &phased.classes, by_group(rows, facts, phased.classes.len(), class)));
    }
    if names.len() > 1 {
        told.push(grouped("phase", &names, by_group(rows, facts, names.len(), phase)));
    }
    told
}

/// Groups with their names, but for those nothing was planned for.
fn grouped(by: &'static str, names: &[String], figures: Vec<Group>) -> Grouping {
    let named = names.iter().cloned().zip(figures);
    Grouping { by, groups: named.filter(|(_, group)| group.requests.planned > 0).collect() }
}

/// The requests by class, by client and by turn, where there is more than one of them.
fn groups(rows: &[Row], facts: &RunFacts, replay: Option<&Outline>) -> Vec<Grouping> {
    let Some(replay) = replay else { return Vec::new() };
    let by = [("class", &replay.classes), ("client", &replay.clients), ("turn", &replay.turns)];
    let told = by.into_iter().filter(|(_, labels)| labels.names.len() > 1);
    told.map(|(by, labels)| {
        let of = |row: &Row| labels.of.get(row.id as usize).map(|&index| index as usize);
        grouped(by, &labels.names, by_group(rows, facts, labels.names.len(), of))
    })
    .collect()
}

/// `--metadata`, as pairs.
pub fn metadata(args: &ServeArgs) -> Outcome<Vec<(String, String)>> {
    args.report.metadata.iter().map(|pair| target::key_value("--metadata", pair)).collect()
}

/// The schedule's start, from any request whose offset the plan knows.
fn origin(rows: &[Row], plan: &Plan) -> Option<Time> {
    let of = |row: &Row| Some(row.at.get(Moment::Scheduled)? - plan.intent(IntentId(row.id as u32)).offset?);
    rows.iter().find_map(of)
}

/// Whether a model answered, so that nothing was sent.
fn modelled(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.stamps == StampSource::Virtual)
}

/// Measured rows, and probes; warm-ups are dropped.
fn part(rows: Vec<Row>, plan: &Plan) -> (Vec<Row>, Vec<Row>) {
    let mut measured = Vec::with_capacity(rows.len());
    let mut probes = Vec::new();
    for row in rows {
        match plan.intent(IntentId(row.id as u32)).stage {
            Stage::Measured => measured.push(row),
            Stage::Probe => probes.push(row),
            Stage::Warmup => {}
        }
    }
    (measured, probes)
}
