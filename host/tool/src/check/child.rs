//! The child process of `plugin check`: runs the scenarios and sends each finding to the parent at once, since the
//! backend may crash the process.

use super::findings::{Line, Task, begin, breach, breaches, report_to, seen, send, violated};
use super::kit::Kit;
use super::scenarios::{SCENARIOS, Scenario};
use super::verdict::Verdict;
use crate::subprocess::ReportPipe;
use std::cmp::Ordering;
use std::process::ExitCode;
use std::time::Duration;
use trtserver_plugin_host::library;
use trtserver_plugin_host::library::Stage;
use trtserver_plugin_testkit as testkit;

pub fn run(task: &str) -> Result<ExitCode, String> {
    let pipe = ReportPipe::open()?;
    let task: Task = serde_json::from_str(task).map_err(|e| e.to_string())?;
    report_to(pipe);
    testkit::set_timeout(Duration::from_secs_f64(task.limit / 4.0));
    testkit::set_observer(testkit::Observer { violation: violated, exercised: seen });
    trtserver_plugin_host::set_log_level(0);
    let before = super::process::Snapshot::take();
    let first = !task.skip.contains("file.entry_symbol");
    if first {
        begin("file.entry_symbol");
    }
    let table = match library::enter(&task.file, testkit::host_table()) {
        Ok(table) => table,
        Err(refusal) => {
            refused(refusal.stage, &refusal.why);
            send(&Line::Done);
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
                begin(id);
                report(id, Verdict::Untested(format!("not reached: it needs '{missing}'")));
            }
            continue;
        }
        if skip.contains(*id) {
            continue;
        }
        begin(id);
        testkit::forget_timeouts();
        let already = breaches(id);
        let verdict = run(&mut kit);
        testkit::settle();
        if !matches!(verdict, Verdict::Kept(_)) || breaches(id) > already {
            kit.task.failed.insert((*id).to_owned());
        }
        report(id, verdict);
    }
    send(&Line::Done);
    Ok(ExitCode::SUCCESS)
}

fn report(id: &'static str, verdict: Verdict) {
    let owned = id.to_owned();
    match verdict {
        Verdict::Kept(note) => send(&Line::Kept { id: owned, note }),
        Verdict::Broken(why) => breach(id, why),
        Verdict::Warning(why) => send(&Line::Warning { id: owned, why }),
        Verdict::Untested(why) => send(&Line::Untested { id: owned, why }),
        Verdict::NotApplicable(why) => send(&Line::NotApplicable { id: owned, why }),
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
            Ordering::Less => Verdict::kept(),
            Ordering::Equal => Verdict::Broken(why.to_owned()),
            Ordering::Greater => Verdict::Untested("not reached".to_owned()),
        };
        report(id, verdict);
    }
}
