//! Keys and flags without effect are refused.

use flashyard_scenario::{NoFiles, Overrides, plan_runs};

const DEMO: &str = include_str!("../../../../scenarios/demo/scenario.toml");

/// The refusal of a text with flags; empty where there is none.
fn refusal(text: &str, settings: &[&str], sweeps: &[&str]) -> String {
    let owned = |list: &[&str]| list.iter().map(|&item| item.to_owned()).collect();
    let overrides = Overrides { settings: owned(settings), sweeps: owned(sweeps), ..Overrides::default() };
    plan_runs(text, "demo.toml", &overrides, &NoFiles).err().map_or(String::new(), |error| error.to_string())
}

const PATTERN: &str = "pattern = \"uniform\"\nsize = \"4 KiB\"\n";

fn with(workload: &str) -> String {
    DEMO.replace("table2 = \"Ali-0\"", &format!("{workload}#"))
}

#[test]
fn a_key_of_the_file_that_nothing_uses_is_refused_with_its_line() {
    for (text, expected) in [
        (
            with("table2 = \"Ali-0\"\npattern = \"uniform\"\n"),
            "line 22: workload.pattern has no effect: requests come from workload.table2; give one of the two",
        ),
        (
            with("table2 = \"Ali-0\"\nread_share = 0.5\n"),
            "workload.read_share has no effect: it goes with workload.pattern, and requests come from workload.table2",
        ),
        (with("surrogate = \"WBS\"\nsize = \"4 KiB\"\n"), "requests come from workload.surrogate"),
        (with(&format!("{PATTERN}zipf_theta = 0.9\n")), "it goes with workload.pattern = \"zipf\""),
        (with(&format!("{PATTERN}hot_space = 0.1\n")), "workload.hot_space has no effect"),
        (with(&format!("{PATTERN}speed = 2.0\n")), "it goes with workload.trace, workload.traces"),
        (with(&format!("{PATTERN}repeat = 2\n")), "workload.repetitions has no effect"),
        (with(&format!("{PATTERN}requests_per_second = 10\n")), "workload.depth makes a closed loop"),
        (with(&format!("{PATTERN}burst = \"1 ms\"\npause = \"1 ms\"\n")), "workload.burst has no effect"),
        (with("fio = \"job.fio\"\n"), "workload.depth has no effect: it goes with workload.trace"),
        (DEMO.replace("warmup =", "measure = \"1 ms\"\nwarmup ="), "run.measure says when the run ends"),
        (
            format!("{DEMO}\n[life]\nendurance = 3\n"),
            "line 30: life.endurance has no effect: flashyard run does not use it; flashyard age does",
        ),
        (format!("{DEMO}\n[serve]\npace = \"off\"\n"), "flashyard serve does"),
        (format!("{DEMO}\n[explore]\nwithin_percent = 3\n"), "nothing is swept"),
        (format!("{DEMO}\n[harvest]\nbalance = \"literal\"\ndamping = 0.5\n"), "takes whole steps"),
        (
            format!("{}\n[harvest]\nperiod = \"1 ms\"\n", DEMO.replace(", \"proch\", \"xbof\"", "")),
            "harvest.period has no effect: it is a matter of proch, xbof, and designs are conv, oc, shrunk, vh, vh-ideal",
        ),
        (format!("{}\n[harvest]\nwarm_memory = true\n", DEMO.replace(", \"xbof\"", "")), "it is a matter of xbof"),
        (
            DEMO.replace("profile = \"xbof-4tb\"", "profile = \"xbof-4tb\"\naged_state = \"x\"\nfilled = 0.5"),
            "drive.aged_state says",
        ),
    ] {
        let found = refusal(&text, &[], &[]);
        assert!(found.starts_with("demo.toml, line ") && found.contains(expected), "{expected:?} is not in: {found}");
    }
}

#[test]
fn a_flag_that_nothing_uses_is_refused_and_named() {
    for (setting, expected) in [
        ("workload.read_share=0.5", "--set workload.read_share=0.5: workload.read_share has no effect: it goes with"),
        ("workload.requests_per_second=10", "makes a closed loop"),
        ("life.endurance=10", "flashyard age does"),
        ("explore.within_percent=10", "nothing is swept"),
    ] {
        let found = refusal(DEMO, &[setting], &[]);
        assert!(found.contains(expected), "{expected:?} is not in: {found}");
    }
    let vh = refusal(DEMO, &["designs=[\"conv\"]", "vh.lenders=2"], &[]);
    assert_eq!(
        vh,
        "--set vh.lenders=2: vh.lenders has no effect: it is a matter of vh, vh-ideal, and designs are conv; leave it out"
    );
}

#[test]
fn a_sweep_that_nothing_uses_is_refused_and_one_that_some_use_is_not() {
    let shares = refusal(DEMO, &[], &["workload.read_share=0.0,1.0"]);
    assert!(shares.starts_with("--sweep workload.read_share=0.0,1.0: workload.read_share has no effect"), "{shares}");
    let rates = refusal(DEMO, &[], &["workload.requests_per_second=10,1000000"]);
    assert!(rates.contains("--sweep workload.requests_per_second=10,1000000: "), "{rates}");
    assert!(refusal(DEMO, &["designs=[\"conv\", \"oc\"]"], &["harvest.period=1 ms,2 ms"]).contains("harvest.period"));
    for fine in ["harvest.lenders_max=1,2", "vh.lenders=1,2", "workload.depth=1,2", "workload.table2=src,DAP"] {
        assert_eq!(refusal(DEMO, &[], &[fine]), "");
    }
    let axis = format!("{DEMO}\n[sweep]\n\"workload.size\" = [\"4 KiB\", \"8 KiB\"]\n");
    assert!(refusal(&axis, &[], &[]).starts_with("demo.toml, line 30: workload.size has no effect"));
    // Used at one point is used.
    let zipf = with(&format!("{PATTERN}zipf_theta = 0.9\n"));
    assert_eq!(refusal(&zipf, &[], &["workload.pattern=uniform,zipf"]), refusal(&zipf, &[], &[]));
    let swept = format!("{}\n[sweep]\n\"workload.pattern\" = [\"uniform\", \"zipf\"]\n", zipf);
    assert_eq!(refusal(&swept, &[], &[]), "");
}

#[test]
fn a_key_that_a_flag_makes_idle_is_none_of_the_files_mistakes() {
    assert_eq!(refusal(DEMO, &["designs=[\"conv\"]"], &[]), "");
    assert_eq!(refusal(DEMO, &["workload.trace=x.csv"], &[]), "");
    assert_eq!(refusal(DEMO, &["workload.pattern=uniform", "workload.size=4 KiB"], &[]), "");
    let both = refusal(DEMO, &["workload.pattern=uniform", "workload.table2=src"], &[]);
    assert!(both.contains("workload.pattern has no effect"), "{both}");
}

#[test]
fn the_copy_of_a_scenario_runs_again_without_the_keys_that_flags_made_idle() {
    let mixed = include_str!("../../../../scenarios/mixed/scenario.toml");
    for (text, settings) in
        [(DEMO, vec!["designs=[\"conv\"]"]), (DEMO, vec!["workload.trace=x.csv"]), (mixed, vec!["seed=3"])]
    {
        let settings = settings.into_iter().map(str::to_owned).collect();
        let overrides = Overrides { settings, ..Overrides::default() };
        let (resolved, _) = plan_runs(text, "demo.toml", &overrides, &NoFiles).expect("it is good");
        assert_eq!(refusal(&resolved.text, &[], &[]), "", "{}", resolved.text);
    }
}

#[test]
fn the_carried_scenario_of_memories_runs_as_it_is_and_with_any_of_its_designs() {
    const MEMORY: &str = include_str!("../../../../scenarios/memory/scenario.toml");
    for settings in
        [&[][..], &["designs=[\"cxl-ssd\"]"], &["designs=[\"expand\", \"isb\"]", "memory.ahead.isb_degree=2"]]
    {
        assert_eq!(refusal(MEMORY, settings, &[]), "", "{settings:?}");
    }
    let idle = refusal(MEMORY, &["memory.ahead.isb_degree=2"], &[]);
    assert!(idle.contains("memory.ahead.isb_degree has no effect: it is a matter of isb"), "{idle}");
}
