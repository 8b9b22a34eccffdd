//! How scenarios are read: places of mistakes, profiles, overrides.

use flashyard_scenario::{NoFiles, resolve};

const DEMO: &str = include_str!("../../../../scenarios/demo/scenario.toml");

fn error(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|&setting| setting.to_owned()).collect();
    resolve(text, "demo.toml", &overrides, &NoFiles).err().expect("it is wrong").to_string()
}

#[test]
fn the_demo_resolves_and_its_resolved_text_resolves_to_itself() {
    let first = resolve(DEMO, "demo.toml", &["drive.cores=2".to_owned()], &NoFiles).expect("the demo is good");
    assert_eq!(first.scenario.drive.cores, 2);
    let again = resolve(&first.text, "resolved.toml", &[], &NoFiles).expect("it is complete");
    assert_eq!(again.text, first.text);
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let message = error(&DEMO.replace("busy_drives", "bussy_drives"), &[]);
    assert!(message.contains("demo.toml") && message.contains("bussy_drives"), "{message}");
    assert!(message.contains("line 9"), "{message}");
}

#[test]
fn a_bad_unit_is_named_with_its_line_and_the_accepted_units() {
    let message = error(&DEMO.replace("60 ms", "60 minutes"), &[]);
    assert!(message.contains("line 26") && message.contains("ns, us, ms, s"), "{message}");
}

#[test]
fn a_missing_profile_lists_what_there_is() {
    let message = error(&DEMO.replace("xbof-4tb", "nothing"), &[]);
    assert!(message.contains("nothing") && message.contains("xbof-4tb, r8"), "{message}");
}

#[test]
fn scenarios_of_every_system_may_have_factors_of_emission_and_mistakes_in_them_have_a_place() {
    const MIRROR: &str = include_str!("../../../../scenarios/mirror/scenario.toml");
    let with = |text: &str, lines: &str| format!("{}\n[carbon]\n{lines}\n", text.trim_end());
    for text in [DEMO, MIRROR] {
        let own = with(text, "profile = \"act\"\nyears = 3.0");
        let resolved = resolve(&own, "own.toml", &[], &NoFiles).expect("it is good").text;
        assert!(resolved.contains("years = 3.0") && resolved.contains("flash_g_per_gb = 16.9"), "{resolved}");
        assert!(!resolve(text, "own.toml", &[], &NoFiles).expect("it is good").text.contains("[carbon]"));
        let line = own.lines().count();
        let unknown = error(&own.replace("years", "yaers"), &[]);
        assert_eq!(
            unknown.replace("demo.toml", "own.toml"),
            format!("own.toml, line {line}: there is no key carbon.yaers; did you mean carbon.years?")
        );
        let none = error(&own.replace("years = 3.0", "years = 0"), &[]);
        assert!(none.contains(&format!("line {line}: carbon.years is 0; give a number from 0.1")), "{none}");
    }
    let lacking = error(&with(DEMO, "years = 3.0"), &[]);
    assert!(lacking.contains("carbon.flash_g_per_gb") && lacking.contains("carbon.grid_g_per_kwh"), "{lacking}");
    let profile = error(DEMO, &["carbon.profile=atc"]);
    assert!(profile.ends_with("carbon.profile: there is no profile \"atc\"; available: act"), "{profile}");
    let place = profile.split(": carbon").next().unwrap_or_default();
    assert!(place.contains("line ") || place.starts_with("--set"), "{profile}");
}

#[test]
fn overrides_must_name_a_key_that_exists() {
    let unknown = "--set jbof.drvies=3: there is no key jbof.drvies; did you mean jbof.drives?";
    assert_eq!(error(DEMO, &["jbof.drvies=3"]), unknown);
    assert!(error(DEMO, &["nonsense"]).contains("section.key=value"));
}

#[test]
fn a_wrong_value_is_told_with_the_line_or_flag_that_gives_it() {
    let text = DEMO.replace("drives = 12 ", "drives = 5000 ");
    assert_eq!(error(&text, &[]), "demo.toml, line 8: jbof.drives is 5000; give a whole number from 1 to 4096");
    let cores = "drive.cores is \"abc\"; give a whole number from 1 to 32";
    assert_eq!(error(DEMO, &["drive.cores=abc"]), format!("--set drive.cores=abc: {cores}"));
}

#[test]
fn a_number_that_toml_does_not_have_is_told_the_largest() {
    let message = error(&DEMO.replace("seed = 1 ", "seed = 99999999999999999999 "), &[]);
    assert!(message.starts_with("demo.toml, line 4: the whole number is too large; give at most 92"), "{message}");
}

#[test]
fn what_the_schema_cannot_say_is_told_with_its_key_too() {
    let message = error(DEMO, &["serve.pace=0"]);
    assert!(message.starts_with("--set serve.pace=0: serve.pace: \"0\" is no pace"), "{message}");
}

#[test]
fn zones_that_cannot_be_are_told_with_the_place_of_their_key() {
    let setting = "serve.zones.size=32 MiB".to_owned();
    let text = format!("{DEMO}\n[serve.zones]\ncapacity = \"33 MiB\"\n");
    let resolved = resolve(&text, "demo.toml", &[setting], &NoFiles).expect("its keys are known");
    let refused = resolved.scenario.serve.zones.of(&[(0, 1 << 20)]).expect_err("more than a zone");
    let line = text.lines().position(|line| line.starts_with("capacity = \"33")).expect("it is there") + 1;
    let message = resolved.locate(refused, &[]).to_string();
    assert!(message.starts_with(&format!("demo.toml, line {line}: serve.zones.capacity")), "{message}");
    assert_eq!(
        error(DEMO, &["serve.zones.open_max=70000"]),
        "--set serve.zones.open_max=70000: serve.zones.open_max is 70000; give a whole number from 0 to 65536"
    );
}

#[test]
fn an_incomplete_scenario_is_told_all_that_it_lacks() {
    let message = error("name = \"x\"\n[jbof]\ndrives = 2\n[drive]\ncores = 3\n", &[]);
    assert!(message.starts_with("demo.toml: "), "{message}");
    for part in ["seed, designs, host, prices", "jbof.busy_drives", "drive.capacity", "drive.profile = \"xbof-4tb\""] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
}

#[test]
fn a_source_of_requests_on_the_command_line_takes_the_place_of_the_files() {
    let settings = ["workload.pattern=uniform", "workload.size=4 KiB"].map(str::to_owned);
    let workload = resolve(DEMO, "demo.toml", &settings, &NoFiles).expect("it is good").scenario.workload;
    assert!(workload.table2.is_none() && workload.size.is_some() && workload.depth == Some(64));
}

#[test]
fn a_trace_may_repeat_under_either_name() {
    for name in ["repeat", "repetitions"] {
        let settings = ["workload.trace=x".to_owned(), format!("workload.{name}=3")];
        let workload = resolve(DEMO, "demo.toml", &settings, &NoFiles).expect("it is good").scenario.workload;
        assert_eq!(workload.repetitions, Some(3));
    }
}
