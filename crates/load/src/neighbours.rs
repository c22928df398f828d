//! Whether server and generator get in each other's way, as they run on one host, and what helps.

use std::collections::BTreeSet;
use std::fs;

use authentick_net::affinity;

use crate::generator::processor;
use crate::plan::{Plan, Scheme};
use crate::record::is_this_host;

/// Logs what [`advice`] says of a run that begins, if its server is on this host.
pub fn advise(plan: &Plan, pids: &[u32]) {
    let server = if plan.scheme == Scheme::Ke { plan.ke } else { plan.ntp };
    if is_this_host(server)
        && let Some(advice) = advice(plan, pids)
    {
        log::info!("{advice}");
    }
}

/// What whoever loads a server on this very host should know, as both may run on one processor; `None` if they
/// cannot, or nothing is known against it. `pids` are the server's processes, as far as they are known.
#[must_use]
pub fn advice(plan: &Plan, pids: &[u32]) -> Option<String> {
    let allowed = affinity::allowed().unwrap_or_default();
    let known: Option<Vec<BTreeSet<usize>>> = pids.iter().map(|&pid| processors_of(pid)).collect();
    let server = known.map(|sets| sets.into_iter().flatten().collect::<BTreeSet<usize>>());
    sentence(plan, &allowed, server.filter(|server| !server.is_empty()).as_ref())
}

/// The same for a generator that may use the processors `allowed`, and a server that may use those of `server`; `None`
/// if nobody knows.
fn sentence(plan: &Plan, allowed: &[usize], server: Option<&BTreeSet<usize>>) -> Option<String> {
    let mine: BTreeSet<usize> = match plan.pinned {
        true => (0..plan.workers).filter_map(|index| processor(allowed, index)).collect(),
        false => allowed.iter().copied().collect(),
    };
    let shared: Vec<String> = match server {
        Some(server) => mine.intersection(server).map(ToString::to_string).collect(),
        None => mine.iter().map(ToString::to_string).collect(),
    };
    if shared.is_empty() {
        return None;
    }
    let may = if server.is_some() { "may use" } else { "shares, unless it is kept off them," };
    let free: Vec<String> =
        allowed.iter().filter(|cpu| !mine.contains(cpu)).map(ToString::to_string).collect();
    let remedy = match (free.is_empty(), plan.pinned) {
        _ if allowed.len() == 1 => {
            "start it on another one, or let an agent on another host send (--agents)".to_owned()
        }
        (false, _) => format!("start it with taskset -c {}", free.join(",")),
        (true, true) => "use fewer --workers, or let agents on other hosts send (--agents)".to_owned(),
        (true, false) => {
            "leave --unpinned out and start the server with taskset on other processors, or let agents on other hosts \
             send (--agents)"
                .to_owned()
        }
    };
    Some(format!(
        "the server is on this host, and {may} the generator's processors ({}): what one takes the other lacks; \
         {remedy}",
        shared.join(",")
    ))
}

/// On which processors any thread of a process may run; empty if that is not known.
fn processors_of(pid: u32) -> Option<BTreeSet<usize>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut all = BTreeSet::new();
    for thread in threads.flatten() {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        all.extend(list.map(str::trim).and_then(list_of).unwrap_or_default());
    }
    Some(all)
}

/// `0-2,5` as the kernel writes it.
fn list_of(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(workers: u32, pinned: bool, allowed: &[usize], server: Option<&[usize]>) -> String {
        let plan = Plan { workers, pinned, ..Plan::plain("127.0.0.1:123".parse().unwrap()) };
        let server: Option<BTreeSet<usize>> = server.map(|cpus| cpus.iter().copied().collect());
        sentence(&plan, allowed, server.as_ref()).unwrap_or_default()
    }

    #[test]
    fn one_processor_for_both_is_told_unless_the_server_is_known_to_be_elsewhere() {
        for (server, may) in [(None, "shares, unless"), (Some(&[0][..]), "may use")] {
            for is_pinned in [true, false] {
                let said = said(1, is_pinned, &[0], server);
                assert!(said.contains(may) && said.contains("processors (0)"), "{said}");
                assert!(said.contains("start it on another one, or let an agent"), "{said}");
            }
        }
        assert_eq!(said(1, true, &[1], Some(&[0])), "");
    }

    #[test]
    fn server_that_may_use_the_generator_s_processor_is_told_with_a_remedy() {
        let unknown = said(1, true, &[0, 1], None);
        assert!(
            unknown.contains("unless it is kept off them") && unknown.contains("processors (1)"),
            "{unknown}"
        );
        assert!(unknown.ends_with("start it with taskset -c 0"), "{unknown}");
        let known = said(1, true, &[0, 1, 4], Some(&[0, 1, 4]));
        assert!(
            known.contains("may use the generator's processors (4)") && known.ends_with("-c 0,1"),
            "{known}"
        );
        assert!(
            said(2, true, &[0, 1], Some(&[0]))
                .ends_with("--workers, or let agents on other hosts send (--agents)")
        );
        assert!(said(1, false, &[0, 1], None).contains("leave --unpinned out"));
    }

    #[test]
    fn server_on_processors_of_its_own_is_no_matter() {
        assert_eq!(said(1, true, &[0, 1], Some(&[0])), "");
        assert_eq!(said(2, true, &[0, 1, 2, 3], Some(&[0, 1])), "");
    }

    #[test]
    fn processors_of_a_process_are_those_that_the_kernel_lists() {
        assert_eq!(list_of("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(list_of("x"), None);
        let own = processors_of(std::process::id()).unwrap();
        assert!(affinity::allowed().unwrap().iter().all(|cpu| own.contains(cpu)));
        assert_eq!(processors_of(u32::MAX), None);
    }
}
