//! The child process of `plugin check`: runs the scenarios and sends each finding to the parent at
//! once, since the backend may crash the process.

use super::findings::{
    FindingLine, Task, begin_scenario, count_breaches, note_seen, report_breach, report_to,
    report_violation, send_line,
};
use super::kit::Kit;
use super::scenarios::{SCENARIOS, Scenario};
use super::verdict::ScenarioVerdict;
use crate::subprocess::ReportPipe;
use std::cmp::Ordering;
use std::process::ExitCode;
use std::time::Duration;
use trtserver_plugin_host::library;
use trtserver_plugin_host::library::Stage;
use trtserver_plugin_testkit as testkit;

pub fn run_scenarios(task: &str) -> Result<ExitCode, String> {
    let pipe = ReportPipe::open()?;
    let task: Task = serde_json::from_str(task).map_err(|e| e.to_string())?;
    report_to(pipe);
    testkit::set_timeout(Duration::from_secs_f64(task.limit / 4.0));
    testkit::set_observer(testkit::Observer { violation: report_violation, exercised: note_seen });
    trtserver_plugin_host::set_log_level(0);
    let before = super::process::Snapshot::take();
    let first = !task.skip.contains("file.entry_symbol");
    if first {
        begin_scenario("file.entry_symbol");
    }
    let table = match library::enter_library(&task.file, testkit::host_table()) {
        Ok(table) => table,
        Err(refusal) => {
            refused(refusal.stage, &refusal.why);
            send_line(&FindingLine::Done);
            return Ok(ExitCode::SUCCESS);
        }
    };
    let skip = task.skip.clone();
    let mut kit = Kit::new(task, table, before);
    if first {
        for (id, verdict) in kit.check_file() {
            report(id, verdict);
        }
    }
    for Scenario { id, needs, run } in SCENARIOS {
        if let Some(missing) = needs.iter().find(|n| kit.task.failed.contains(**n)) {
            kit.task.failed.insert((*id).to_owned());
            if !skip.contains(*id) {
                begin_scenario(id);
                report(id, ScenarioVerdict::Untested(format!("not reached: it needs '{missing}'")));
            }
            continue;
        }
        if skip.contains(*id) {
            continue;
        }
        begin_scenario(id);
        testkit::forget_timeouts();
        let already = count_breaches(id);
        let verdict = run(&mut kit);
        testkit::settle();
        if !matches!(verdict, ScenarioVerdict::Kept(_)) || count_breaches(id) > already {
            kit.task.failed.insert((*id).to_owned());
        }
        report(id, verdict);
    }
    send_line(&FindingLine::Done);
    Ok(ExitCode::SUCCESS)
}

fn report(id: &'static str, verdict: ScenarioVerdict) {
    let owned = id.to_owned();
    match verdict {
        ScenarioVerdict::Kept(note) => send_line(&FindingLine::Kept { id: owned, note }),
        ScenarioVerdict::Broken(why) => report_breach(id, why),
        ScenarioVerdict::Warning(why) => send_line(&FindingLine::Warning { id: owned, why }),
        ScenarioVerdict::Untested(why) => send_line(&FindingLine::Untested { id: owned, why }),
        ScenarioVerdict::NotApplicable(why) => {
            send_line(&FindingLine::NotApplicable { id: owned, why })
        }
    }
}

/// Reports a file that is not a backend for this host.
fn refused(stage: Stage, why: &str) {
    let at = match stage {
        Stage::Load | Stage::Entry => 0,
        Stage::Interface => 1,
        Stage::RequiredEntries => 2,
        Stage::Description => 3,
        Stage::Extensions => 4,
    };
    let all = [
        "file.entry_symbol",
        "file.interface",
        "file.entries",
        "file.info",
        "file.extensions",
        "file.exports",
    ];
    for (n, id) in all.into_iter().enumerate() {
        let verdict = match n.cmp(&at) {
            Ordering::Less => ScenarioVerdict::kept(),
            Ordering::Equal => ScenarioVerdict::Broken(why.to_owned()),
            Ordering::Greater => ScenarioVerdict::Untested("not reached".to_owned()),
        };
        report(id, verdict);
    }
}
