//! Profiles of drives: each makes a drive that can be built, and what its data sheet states beside its inputs.

use flashyard_scenario::{NoFiles, SYSTEMS, drive::drive, keyed, resolve};

const DEMO: &str = include_str!("../../../../scenarios/demo/scenario.toml");

fn profiles() -> impl Iterator<Item = &'static str> {
    SYSTEMS.builtin_profiles().into_iter().filter(|profile| profile.0 == "drives").map(|profile| profile.1)
}

#[test]
fn every_profile_makes_a_drive_and_says_where_each_number_is_from() {
    for name in profiles() {
        let text = DEMO.replace("xbof-4tb", name);
        let resolved = resolve(&text, "demo.toml", &[], &NoFiles).unwrap_or_else(|error| panic!("{name}: {error}"));
        let section = &resolved.scenario.drive;
        let config = drive(section).unwrap_or_else(|error| panic!("{name}: {error}"));
        config.validate().map_err(keyed::drive).unwrap_or_else(|error| panic!("{name}: {error}"));
        let marks = ["# [P]", "# [C]", "# [D]", "# [A]", "# [X]"];
        let lines = resolved.text.lines().skip_while(|line| *line != "[drive]").skip(1);
        for line in lines.take_while(|line| !line.starts_with('[')).filter(|line| line.contains(" = ")) {
            let is_name = line.starts_with("profile");
            assert!(is_name || marks.iter().any(|mark| line.contains(mark)), "{name}: {line}");
        }
    }
}

#[test]
fn a_resolved_drive_resolves_to_itself() {
    for name in profiles() {
        let first = resolve(&DEMO.replace("xbof-4tb", name), "demo.toml", &[], &NoFiles).expect(name);
        let second = resolve(&first.text, "resolved.toml", &[], &NoFiles).expect(name);
        assert_eq!(first.text, second.text, "{name}");
    }
}

#[test]
fn a_drive_of_few_figures_is_told_what_it_lacks_where_it_stands() {
    let text = DEMO.replace("profile = \"xbof-4tb\"", "class = \"tlc\"");
    let lacking = resolve(&text, "demo.toml", &[], &NoFiles).err().expect("it has no capacity").to_string();
    assert!(lacking.contains("a key is missing: drive.capacity; a profile gives"), "{lacking}");
    let flag = ["drive.capacity=3 apples".to_owned()];
    let wrong = resolve(DEMO, "demo.toml", &flag, &NoFiles).err().expect("it is no size").to_string();
    assert!(wrong.starts_with("--set drive.capacity=3 apples: drive.capacity"), "{wrong}");
    let flag = ["drive.capacity=3 TB".to_owned()];
    let idle = resolve(DEMO, "demo.toml", &flag, &NoFiles).err().expect("the profile says it").to_string();
    assert!(idle.contains("drive.capacity has no effect: channels, dies_per_channel"), "{idle}");
    let class = text.replace("class = \"tlc\"", "class = \"plc\"\ncapacity = \"1 TB\"");
    let unknown = resolve(&class, "demo.toml", &[], &NoFiles).err().expect("there is no such class").to_string();
    assert!(unknown.contains("did you mean") || unknown.contains("give one of slc, tlc"), "{unknown}");
}
