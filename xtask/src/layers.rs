//! Imports go to a strictly lower layer, and every third-party crate has a reason.

use crate::Finding;
use crate::policy::{Imports, Layer, Place, Policy};
use crate::repository::{Crate, Dependency, Region};

/// Where a type may become a file format on purpose, beside the rooms of systems, whose sections and records are some
/// (rule 5 of the architecture).
const SERDE_HOMES: [&str; 2] = ["report", "describe"];

/// The folder of systems; a crate there without a line of its own stands by the line [`SYSTEMS`].
pub(crate) const SYSTEMS_FOLDER: &str = "crates/systems/";
/// The line of `layers.toml` for all systems.
const SYSTEMS: &str = "systems";

impl Crate {
    fn is_system(&self) -> bool {
        self.directory.starts_with(SYSTEMS_FOLDER)
    }
}

/// Where a crate stands, by its own line or by that of all systems.
fn place_of<'a>(policy: &'a Policy, name: &str, crates: &[Crate]) -> Option<&'a Place> {
    let is_system = || crates.iter().any(|member| member.name == name && member.is_system());
    policy.crates.get(name).or_else(|| policy.crates.get(SYSTEMS).filter(|_| is_system()))
}

/// Everything the manifests do that `layers.toml` does not allow, and every unused permission.
pub(crate) fn check(policy: &Policy, crates: &[Crate]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = crates.iter().flat_map(|member| check_crate(policy, member, crates)).collect();
    findings.extend(unused_permissions(policy, crates));
    findings
}

fn check_crate(policy: &Policy, member: &Crate, crates: &[Crate]) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", member.directory);
    if place_of(policy, &member.name, crates).is_none() {
        let message = format!("`{0}` has no layer; add a line `{0} = {{ layer = … }}` to layers.toml", member.name);
        return vec![Finding::failure(&manifest, 0, message)];
    }
    let complaints = member.dependencies.iter().filter_map(|dependency| {
        if dependency.internal {
            internal_complaint(policy, member, dependency, crates)
        } else {
            third_party_complaint(policy, member, dependency)
        }
    });
    complaints.map(|message| Finding::failure(&manifest, 0, message)).collect()
}

/// The rule that one import of a workspace crate breaks, the most telling rule first.
fn internal_complaint(policy: &Policy, member: &Crate, import: &Dependency, crates: &[Crate]) -> Option<String> {
    let (from, to) = (&member.name, &import.name);
    let target_region = crates.iter().find(|other| other.name == *to).map(|other| other.region);
    let (Some(place), Some(target)) = (place_of(policy, from, crates), place_of(policy, to, crates)) else {
        return Some(format!("`{from}` imports `{to}`, which has no layer in layers.toml"));
    };
    if member.region != Region::Edge && target_region == Some(Region::Edge) {
        return Some(format!("`{from}` imports `{to}`: only edge crates may touch an edge crate"));
    }
    if to == "cli" {
        return Some(format!("`{from}` imports `cli`: nothing may depend on the program"));
    }
    let from_layer = match (place.layer, target.layer) {
        (_, Layer::Dev) if import.dev => return None,
        (_, Layer::Dev) => {
            return Some(format!("`{from}` imports `{to}`: a development crate may only be a dev-dependency"));
        }
        // Development crates stand above every layer.
        (Layer::Dev, Layer::At(_)) => i64::MAX,
        (Layer::At(from_layer), Layer::At(to_layer)) if from_layer <= to_layer => {
            return Some(format!(
                "`{from}` (layer {from_layer}) imports `{to}` (layer {to_layer}): imports go to a strictly lower \
                 layer; share a waist or meet in a composition above both"
            ));
        }
        (Layer::At(from_layer), Layer::At(_)) => from_layer,
    };
    let is_foundation = policy.foundations.get(to).is_some_and(|foundation| from_layer >= foundation.from_layer);
    if policy.foundations.get(to).is_some_and(|foundation| foundation.except.contains(from)) {
        return Some(format!("`{from}` imports `{to}`, which layers.toml keeps from it by name"));
    }
    // Tests may reach any lower layer; only shipped imports are named one by one.
    let is_named = match &place.imports {
        Imports::EveryLowerLayer => true,
        Imports::Named(names) => names.contains(to),
    };
    if is_foundation || is_named || import.dev {
        return None;
    }
    Some(format!(
        "`{from}` imports `{to}`, which is lower but not among its imports in layers.toml; a new edge between crates \
         is argued in the pull request and added there"
    ))
}

fn third_party_complaint(policy: &Policy, member: &Crate, dependency: &Dependency) -> Option<String> {
    let (user, name) = (&member.name, &dependency.name);
    if name == "serde" && !dependency.dev && !member.is_system() && !SERDE_HOMES.contains(&user.as_str()) {
        return Some(format!(
            "`{user}` uses serde: only {} and rooms of systems may, so that no model type becomes a file format by convenience",
            SERDE_HOMES.join(" and ")
        ));
    }
    let names = |known: &String| known == user || known == SYSTEMS && member.is_system();
    let is_shipped = policy.third_party.get(name).is_some_and(|permission| permission.used_by.iter().any(names));
    if is_shipped || (dependency.dev && policy.third_party_in_tests.contains_key(name)) {
        return None;
    }
    let (table, form) = match dependency.dev {
        true => ("third_party_in_tests", format!("{name} = \"…\"")),
        false => ("third_party", format!("{name} = {{ why = \"…\", used_by = [\"{user}\"] }}")),
    };
    Some(format!(
        "`{user}` uses `{name}` without permission; argue for it with `{form}` under [{table}] in layers.toml"
    ))
}

/// Lines of `layers.toml` that no manifest needs any more: a permission is given up with its use.
fn unused_permissions(policy: &Policy, crates: &[Crate]) -> Vec<Finding> {
    let is_meant = |member: &Crate, user: &str| member.name == user || user == SYSTEMS && member.is_system();
    let uses = |user: &str, name: &str| {
        let mut meant = crates.iter().filter(|member| is_meant(member, user));
        meant.any(|member| member.dependencies.iter().any(|dependency| dependency.name == name))
    };
    let mut stale = Vec::new();
    for name in policy.crates.keys().filter(|name| !crates.iter().any(|member| is_meant(member, name))) {
        stale.push(format!("`{name}` has a layer but is no workspace crate; remove its line"));
    }
    for (name, place) in &policy.crates {
        let Imports::Named(imports) = &place.imports else { continue };
        for import in imports.iter().filter(|import| !uses(name, import)) {
            stale.push(format!("`{name}` may import `{import}` but does not; remove it from its imports"));
        }
    }
    for (name, permission) in &policy.third_party {
        for user in permission.used_by.iter().filter(|user| !uses(user, name)) {
            stale.push(format!("`{user}` may use `{name}` but does not; remove it from `used_by`"));
        }
    }
    for name in policy.third_party_in_tests.keys() {
        if !crates.iter().any(|member| uses(&member.name, name)) {
            stale.push(format!("no crate's tests use `{name}`; remove its line"));
        }
    }
    stale.into_iter().map(|message| Finding::failure("layers.toml", 0, message)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [crates]
        units = { layer = 0 }
        kernel = { layer = 1 }
        flash = { layer = 1 }
        nand = { layer = 2, imports = ["flash"] }
        ftl = { layer = 2, imports = ["flash"] }
        report = { layer = 4 }
        scenario = { layer = 5, imports = "every lower layer" }
        trace_io = { layer = 6 }
        cli = { layer = 8, imports = "every lower layer" }
        testkit = { layer = "dev" }
        [foundations]
        units = { from_layer = 1 }
        kernel = { from_layer = 2, except = ["report"] }
        [third_party]
        libm = { why = "the same mathematics everywhere", used_by = ["nand"] }
        serde = { why = "the result schema is a format", used_by = ["report", "kernel"] }
        [third_party_in_tests]
        proptest = "property tests with shrinking"
    "#;

    /// One crate of the workspace with one dependency; a trailing `?` makes it a dev-dependency.
    fn complaint(user: &str, dependency: &str) -> String {
        let policy = Policy::parse(POLICY).unwrap();
        let crates: Vec<Crate> = policy.crates.keys().map(|name| member(name)).collect();
        let name = dependency.trim_end_matches('?');
        let dependency = Dependency {
            name: name.to_owned(),
            internal: policy.crates.contains_key(name),
            dev: dependency.ends_with('?'),
            identifier: name.to_owned(),
        };
        let user = Crate { dependencies: vec![dependency], ..member(user) };
        check_crate(&policy, &user, &crates).iter().map(ToString::to_string).collect()
    }

    fn member(name: &str) -> Crate {
        let region = match name {
            "cli" | "trace_io" => Region::Edge,
            "testkit" => Region::Dev,
            _ => Region::Pure,
        };
        let directory = format!("crates/{name}");
        Crate { name: name.to_owned(), region, directory, targets: Vec::new(), dependencies: Vec::new() }
    }

    #[test]
    fn lower_layers_foundations_and_permitted_crates_are_silent() {
        for (user, dependency) in [
            ("nand", "flash"),
            ("nand", "kernel"),
            ("flash", "units"),
            ("scenario", "report"),
            ("cli", "trace_io"),
            ("testkit", "units"),
            ("nand", "testkit?"),
            ("nand", "libm"),
            ("nand", "libm?"),
            ("flash", "proptest?"),
            ("report", "serde"),
        ] {
            assert_eq!(complaint(user, dependency), "", "{user} -> {dependency}");
        }
    }

    #[test]
    fn every_forbidden_import_is_explained() {
        for (user, dependency, expected) in [
            ("ftl", "nand", "strictly lower"),
            ("ftl", "nand?", "strictly lower"),
            ("units", "kernel", "strictly lower"),
            ("flash", "kernel", "strictly lower"),
            ("scenario", "trace_io", "only edge crates"),
            ("scenario", "trace_io?", "only edge crates"),
            ("trace_io", "cli", "nothing may depend on the program"),
            ("nand", "testkit", "only be a dev-dependency"),
            ("report", "kernel", "keeps from it by name"),
            ("report", "flash", "not among its imports"),
            ("testkit", "flash", "not among its imports"),
            ("ftl", "libm", "without permission"),
            ("ftl", "proptest", "under [third_party]"),
            ("ftl", "rand?", "under [third_party_in_tests]"),
            ("kernel", "serde", "only report and describe and rooms of systems may"),
            ("stranger", "units", "has no layer"),
        ] {
            let message = complaint(user, dependency);
            assert!(message.contains(expected), "{user} -> {dependency} gave {message:?}");
        }
    }

    #[test]
    fn a_permission_nobody_uses_is_reported() {
        let policy = Policy::parse(POLICY).unwrap();
        let crates: Vec<Crate> = ["units", "nand"].map(member).into();
        let messages: String = unused_permissions(&policy, &crates).iter().map(|f| format!("{f}\n")).collect();
        for expected in ["`cli` has a layer but", "`nand` may import `flash`", "`nand` may use `libm`", "`proptest`"] {
            assert!(messages.contains(expected), "{expected} not in {messages}");
        }
    }
}
