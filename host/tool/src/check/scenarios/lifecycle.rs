//! Opening and closing of backends, models and instances, and what remains afterwards.

use crate::check::element::first_difference;
use crate::check::execute::{execute_one, failure_text};
use crate::check::kit::{Kit, check_agreement, last_patch};
use crate::check::model;
use crate::check::model::ModelPlan;
use crate::check::process;
use crate::check::process::Snapshot;
use crate::check::verdict::ScenarioVerdict;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use trtserver_plugin_host::library::table;
use trtserver_plugin_testkit::{self as testkit, Failure, InstanceSpec, Model, settle};

pub fn backend_open(kit: &mut Kit) -> ScenarioVerdict {
    let backend = match kit.open() {
        Ok(backend) => backend,
        Err(e) => return ScenarioVerdict::Broken(format!("it does not open: {}", e.text)),
    };
    // SAFETY: the backend is open.
    match unsafe { check_agreement(backend.info(), &kit.platforms) } {
        Ok(runtime) if runtime.is_empty() => ScenarioVerdict::kept(),
        Ok(runtime) => ScenarioVerdict::Kept(format!("framework: {runtime}")),
        Err(why) => ScenarioVerdict::Broken(why),
    }
}

pub fn backend_settings(kit: &mut Kit) -> ScenarioVerdict {
    let mut settings = kit.task.settings.clone();
    settings.insert("unknown setting".to_owned(), "1".to_owned());
    settings.insert("x".to_owned(), String::new());
    match kit.open_as(&kit.platforms.name, &settings) {
        Ok(_) => ScenarioVerdict::kept(),
        Err(e) if e.text.trim().is_empty() => {
            ScenarioVerdict::Broken("refused with an error without a text".to_owned())
        }
        Err(e) => ScenarioVerdict::Kept(format!("refused: {}", e.text)),
    }
}

pub fn two_names(kit: &mut Kit) -> ScenarioVerdict {
    let first = match kit.open() {
        Ok(backend) => backend,
        Err(e) => return ScenarioVerdict::Broken(e.text),
    };
    let second = kit.open_as(&format!("{}_2", kit.platforms.name), &kit.task.settings);
    // Closing the first must not affect the second.
    drop(first);
    match second {
        Err(e) => ScenarioVerdict::NotApplicable(format!("it refuses a second name: {}", e.text)),
        // SAFETY: the second is open.
        Ok(second) => match unsafe { check_agreement(second.info(), &kit.platforms) } {
            Ok(_) => ScenarioVerdict::kept(),
            Err(why) => ScenarioVerdict::Broken(why),
        },
    }
}

pub fn model_open(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.plan() {
        Ok(plan) => plan,
        Err(why) if kit.task.model.is_some() => return ScenarioVerdict::Broken(why),
        Err(why) => return ScenarioVerdict::Untested(why),
    };
    let opened = || -> Result<(), String> {
        let backend = kit.open().map_err(failure_text)?;
        backend.open_model(&plan.spec()).map(drop).map_err(failure_text)
    };
    match opened() {
        Ok(()) => ScenarioVerdict::Kept(plan.label),
        Err(why) => ScenarioVerdict::Broken(format!("{}: {why}", plan.label)),
    }
}

/// The model, or one that the backend may refuse.
fn any_plan(kit: &mut Kit) -> Option<ModelPlan> {
    let dir = kit.task.scratch.join("check");
    kit.plan().ok().or_else(|| ModelPlan::own(&dir, &kit.platforms, 8).into_iter().next())
}

pub fn broken_config(kit: &mut Kit) -> ScenarioVerdict {
    let Some(plan) = any_plan(kit) else {
        return ScenarioVerdict::NotApplicable("no model".to_owned());
    };
    let backend = match kit.open() {
        Ok(backend) => backend,
        Err(e) => return ScenarioVerdict::Broken(e.text),
    };
    let (mut refusal, mut silent) = (None, Vec::new());
    let mut record = |what: &str, opened: Result<(), Failure>| match opened {
        Ok(()) => {}
        Err(e) if e.text.trim().is_empty() => silent.push(what.to_owned()),
        Err(e) => refusal = refusal.take().or(Some(format!("{what}: {}", e.text))),
    };
    let mut empty = plan.spec();
    (empty.inputs, empty.outputs) = (Vec::new(), Vec::new());
    record("no inputs and outputs", backend.open_model(&empty).map(drop));
    let mut untyped = plan.spec();
    untyped.inputs.iter_mut().for_each(|input| input.dtype = 99);
    record("an unknown data type", backend.open_model(&untyped).map(drop));
    let mut missing = plan.spec();
    missing.version_dir = format!("{}/missing", missing.dir);
    missing.file = "missing".to_owned();
    record("a missing model file", backend.open_model(&missing).map(drop));
    match (silent.first(), refusal) {
        (Some(what), _) => {
            ScenarioVerdict::Broken(format!("{what} is refused with an error without a text"))
        }
        (None, Some(refusal)) => ScenarioVerdict::Kept(refusal),
        (None, None) => ScenarioVerdict::NotApplicable("it accepts every configuration".to_owned()),
    }
}

pub fn complete_config(kit: &mut Kit) -> ScenarioVerdict {
    if table::autocomplete_extension(kit.table).is_none() {
        return ScenarioVerdict::NotApplicable("the backend has no such extension".to_owned());
    }
    let Some(plan) = any_plan(kit) else {
        return ScenarioVerdict::NotApplicable("no model".to_owned());
    };
    let backend = match kit.open() {
        Ok(backend) => backend,
        Err(e) => return ScenarioVerdict::Broken(e.text),
    };
    match backend.autocomplete(&plan.spec()).map(|result| result.map(last_patch)) {
        None | Some(Ok(None)) => ScenarioVerdict::kept(),
        Some(Err(e)) if e.text.trim().is_empty() => {
            ScenarioVerdict::Broken("refused with an error without a text".to_owned())
        }
        Some(Err(e)) => ScenarioVerdict::Kept(format!("refused: {}", e.text)),
        Some(Ok(Some(patch))) => {
            let read = trtserver_models::lifecycle::decode_patch(
                &patch,
                &plan.config.name,
                &kit.platforms.name,
            );
            ScenarioVerdict::from_result(read.map(drop).map_err(|e| e.message))
        }
    }
}

pub fn probe_model(kit: &mut Kit) -> ScenarioVerdict {
    if table::model_probe(kit.table).is_none() {
        return ScenarioVerdict::NotApplicable("the backend has no such extension".to_owned());
    }
    let empty = kit.task.scratch.join("empty");
    if let Err(e) = std::fs::create_dir_all(&empty) {
        return ScenarioVerdict::Untested(format!("'{}': {e}", empty.display()));
    }
    let model = kit.task.model.as_ref();
    let version = model.and_then(|dir| Some(dir.join(model::read_model(dir).ok()?.2)));
    for (platform, _) in &kit.platforms.platforms {
        for dir in [Some(&empty), version.as_ref()].into_iter().flatten() {
            // The test host reports entries that do not exist, and errors without a text.
            let _ = testkit::probe(kit.table, platform, dir);
        }
    }
    ScenarioVerdict::kept()
}

pub fn open_together(kit: &mut Kit) -> ScenarioVerdict {
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let work = || -> Result<(), String> {
        let backend = kit.open().map_err(failure_text)?;
        let mut next = plan.spec();
        next.version += 1;
        let first = backend.open_model(&plan.spec()).map_err(failure_text)?;
        let second = backend.open_model(&next).map_err(failure_text)?;
        let run = |model: &Model| {
            let instance = model.open_instance(&InstanceSpec::default()).map_err(failure_text)?;
            execute_one(&instance, plan.request(1, 3, 0), "to one of two models").only().map(drop)
        };
        run(&first)?;
        run(&second)?;
        drop(first);
        run(&second)
    };
    ScenarioVerdict::from_result(work())
}

pub fn many_instances(kit: &mut Kit) -> ScenarioVerdict {
    const ROUNDS: usize = 3;
    let plan = match kit.required_plan() {
        Ok(plan) => plan,
        Err(verdict) => return verdict,
    };
    let reference = kit.reference.clone();
    let work = |n: u32| -> Result<(), String> {
        let backend = kit.open().map_err(failure_text)?;
        let mut spec = plan.spec();
        spec.instances = n;
        let model = backend.open_model(&spec).map_err(failure_text)?;
        let all_open = Barrier::new(n as usize);
        let one = |ordinal: u32| -> Result<(), String> {
            let instance = model.open_instance(&InstanceSpec { ordinal, ..Default::default() });
            // An instance that failed to open must not keep the others waiting.
            all_open.wait();
            let instance = instance.map_err(failure_text)?;
            for _ in 0..ROUNDS {
                let what = format!("to one of {n} instances");
                let executed = execute_one(&instance, plan.request(1, 3, 0), &what);
                let found = executed.response(0)?;
                if let Some(difference) =
                    reference.as_ref().and_then(|r| first_difference(r, found))
                {
                    let why = format!("{difference}, as from a single instance");
                    return Err(executed.fault(0, format!("instance {ordinal}: {why}")));
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let one = &one;
            let threads: Vec<_> = (0..n).map(|ordinal| scope.spawn(move || one(ordinal))).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err("the check panicked".to_owned()))
            })
        })
    };
    ScenarioVerdict::from_result([1, 4, 16].into_iter().try_for_each(work))
}

/// Opens everything, executes a request if there is a model, closes everything.
fn once(kit: &mut Kit) -> Result<(), String> {
    let calls = !kit.task.failed.contains("request.single");
    match kit.plan() {
        Ok(plan) if calls => {
            kit.with_instance(|instance| drop(execute_one(instance, plan.request(1, 3, 0), "")))
        }
        _ => kit.open().map(drop).map_err(failure_text),
    }
}

pub fn thread_cleanup(kit: &mut Kit) -> ScenarioVerdict {
    let before = process::list_threads();
    if let Err(why) = once(kit) {
        return ScenarioVerdict::Broken(why);
    }
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for name in process::new_threads(&before) {
        *names.entry(name).or_default() += 1;
    }
    if names.is_empty() {
        return ScenarioVerdict::kept();
    }
    let list: Vec<String> = names.iter().map(|(name, n)| format!("{n} named '{name}'")).collect();
    ScenarioVerdict::Broken(format!("threads remain after backend_close: {}", list.join(", ")))
}

pub fn process_state(kit: &mut Kit) -> ScenarioVerdict {
    if let Err(why) = once(kit) {
        return ScenarioVerdict::Broken(why);
    }
    match kit.before.changes(&Snapshot::take()) {
        changes if changes.is_empty() => ScenarioVerdict::kept(),
        changes => ScenarioVerdict::Broken(changes.join("; ")),
    }
}

/// Growth that is not reported: allocators keep some freed memory.
const SLACK_KIB: usize = 1024;

/// Cycles of [`open_close_cycles`]: the first ones fill caches, then growth is measured twice.
const CYCLES: [usize; 3] = [10, 20, 20];

pub fn open_close_cycles(kit: &mut Kit) -> ScenarioVerdict {
    let all: usize = CYCLES.iter().sum();
    // The rest of the time limit is for a cycle that began in time.
    let (limit, begin) = (Duration::from_secs_f64(kit.task.limit * 0.8), Instant::now());
    let mut done = 0;
    let mut measured = vec![(process::resident_kib(), process::count_descriptors())];
    let mut threads = BTreeMap::new();
    for n in CYCLES {
        for _ in 0..n {
            if begin.elapsed() > limit {
                return ScenarioVerdict::Untested(format!(
                    "{done} of {all} cycles took {:.1} s: a longer --time-limit is needed",
                    begin.elapsed().as_secs_f64()
                ));
            }
            if let Err(why) = once(kit) {
                return ScenarioVerdict::Broken(format!("cycle {} of {all}: {why}", done + 1));
            }
            settle();
            done += 1;
        }
        measured.push((process::resident_kib(), process::count_descriptors()));
        if measured.len() == 2 {
            threads = process::list_threads();
        }
    }
    let [_, (one, first), (two, _), (three, last)] = measured.as_slice() else {
        return ScenarioVerdict::Untested("not measured".to_owned());
    };
    let measured = CYCLES[1] + CYCLES[2];
    if last > first {
        return ScenarioVerdict::Broken(format!(
            "{} descriptors more after {measured} cycles",
            last - first
        ));
    }
    let more = process::new_threads(&threads).len();
    if more > 0 {
        return ScenarioVerdict::Broken(format!("{more} threads more after {measured} cycles"));
    }
    // A leak grows in both parts.
    if two.saturating_sub(*one) > SLACK_KIB && three.saturating_sub(*two) > SLACK_KIB {
        return ScenarioVerdict::Broken(format!(
            "memory grew by {} KiB in {measured} cycles",
            three - one
        ));
    }
    ScenarioVerdict::Kept(format!("{all} cycles"))
}
