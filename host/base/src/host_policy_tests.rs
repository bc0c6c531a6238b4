//! Unit tests of `host_policy.rs`.

use super::*;

#[test]
fn lists_of_cores_are_read_and_shown() {
    let table: [(&str, &[u32], &str); 5] = [
        ("0", &[0], "0"),
        ("0-3,8", &[0, 1, 2, 3, 8], "0-3,8"),
        ("8,1,0", &[0, 1, 8], "0-1,8"),
        ("2-4,3-5,5", &[2, 3, 4, 5], "2-5"),
        ("1023", &[1023], "1023"),
    ];
    for (text, want, shown) in table {
        let mut policy = HostPolicy::new("p");
        policy.set(CPU_CORES, text).unwrap();
        assert_eq!(policy.cores(), want, "{text}");
        assert_eq!(policy.settings()[CPU_CORES], text);
        assert_eq!(show_numbers(policy.cores()), shown, "{text}");
        assert_eq!(HostPolicy::from_settings("p", policy.settings()), Ok(policy));
    }
}

#[test]
fn wrong_values_are_named() {
    let cores = ["", "x", "3-1", "0-", "-1", "0,,1", "0-1-2", "1024", "0 - 1"];
    let nodes = ["", "x", "-1", "0-1", "1024", "1.5"];
    let cases = cores.map(|value| (CPU_CORES, value)).into_iter();
    for (setting, value) in cases.chain(nodes.map(|value| (NUMA_NODE, value))) {
        let mut policy = HostPolicy::new("p");
        let error = policy.set(setting, value).unwrap_err();
        assert!(error.contains(&format!("'{value}' is not ")), "{error}");
        assert!(!policy.has_settings(), "{setting}={value}");
    }
    let error = HostPolicy::new("p").set("cores", "1").unwrap_err();
    assert!(
        error.ends_with("'cores' is specified, supported settings are 'numa-node', 'cpu-cores'")
    );
}

#[test]
fn threads_and_those_that_they_start_are_bound() {
    let own = process_cores().unwrap();
    let mut policy = HostPolicy::new("p");
    policy.set(CPU_CORES, &own[0].to_string()).unwrap();
    policy.check_machine().unwrap();
    let bound = || {
        policy.bind_thread().unwrap();
        std::thread::spawn(|| process_cores().unwrap()).join().unwrap()
    };
    let bound = std::thread::scope(|scope| scope.spawn(bound).join().unwrap());
    assert_eq!(bound, [own[0]]);
    assert_eq!(process_cores().unwrap(), own, "another thread was bound");
}

#[test]
fn cores_and_nodes_that_the_machine_lacks_are_named() {
    let mut policy = HostPolicy::new("p");
    policy.set(CPU_CORES, "0-1023").unwrap();
    let error = policy.check_machine().unwrap_err().message;
    assert!(error.starts_with("host policy 'p' (cpu-cores=0-1023): CPU core "), "{error}");
    assert!(error.contains(" is not one that this process may use: those are "), "{error}");
    let mut policy = HostPolicy::new("q");
    policy.set(NUMA_NODE, "1023").unwrap();
    let error = policy.check_machine().unwrap_err().message;
    let want = "host policy 'q' (numa-node=1023): memory cannot be bound to node 1023: ";
    assert!(error.starts_with(want), "{error}");
}
