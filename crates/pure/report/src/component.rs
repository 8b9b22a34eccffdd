//! Components of a system and the metrics of each kind.

use crate::figure::{Figures, Metric};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A kind of component that has figures of its own: drives, volumes, processors, links, caches, services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ComponentKind {
    /// Name of one, and of the column that tells it; never changed.
    pub id: &'static str,
    /// Name of several: the array in JSON and the file of the table; never changed.
    pub plural: &'static str,
    /// Name of several for readers.
    pub title: &'static str,
}

/// Drives.
pub static DRIVE: ComponentKind = ComponentKind { id: "drive", plural: "drives", title: "Drives" };

/// One component with its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Something of every component, kind by kind. In JSON it is an array for each kind, under its plural.
#[derive(Clone, Debug, PartialEq)]
pub struct ByKind<T>(Vec<(&'static ComponentKind, Vec<T>)>);

impl<T> Default for ByKind<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByKind<T> {
    /// That of components of one kind.
    pub fn new(kind: &'static ComponentKind, all: Vec<T>) -> Self {
        Self(vec![(kind, all)])
    }

    /// Adds that of components of another kind.
    #[must_use]
    pub fn and(mut self, kind: &'static ComponentKind, all: Vec<T>) -> Self {
        assert!(self.0.iter().all(|(known, _)| known.id != kind.id), "two lists of {}", kind.plural);
        self.0.push((kind, all));
        self
    }

    /// That of the components of `kind`; empty where the system has none.
    pub fn of(&self, kind: &ComponentKind) -> &[T] {
        self.0.iter().find(|(known, _)| known.id == kind.id).map_or(&[], |(_, all)| all)
    }

    /// That of the components of `kind`, to change it.
    pub fn of_mut(&mut self, kind: &ComponentKind) -> &mut [T] {
        self.0.iter_mut().find(|(known, _)| known.id == kind.id).map_or(&mut [], |(_, all)| all)
    }

    /// These kinds with nothing of any component.
    pub(crate) fn emptied(&self) -> Self {
        Self(self.0.iter().map(|(kind, _)| (*kind, Vec::new())).collect())
    }

    /// Writes the arrays to a map.
    pub(crate) fn write_all<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>
    where
        T: Serialize,
    {
        self.0.iter().try_for_each(|(kind, all)| map.serialize_entry(kind.plural, all))
    }
}

impl<T: Serialize> Serialize for ByKind<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.write_all(&mut map)?;
        map.end()
    }
}

/// Metrics in the order of JSON and of columns.
pub type MetricList = fn() -> Vec<&'static Metric>;

/// Reports of a system on its components of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The kind.
    pub kind: &'static ComponentKind,
    /// Figures over the measured window: the columns of the table named by the plural of the kind.
    pub metrics: MetricList,
    /// Figures over time; none where the system records none.
    pub series: MetricList,
    /// Name of the table of its series; never changed.
    pub timeline: &'static str,
    /// Columns of its table in the terminal and on the page, in their order. Without any, neither has such a table.
    pub shown: &'static [&'static Metric],
}

/// A metric as the report page and programs learn of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricAbout {
    /// Kind of the components that have it; `None` for the run as a whole.
    pub component: Option<&'static str>,
    /// Whether it is a series over time, in the details.
    pub series: bool,
    /// Whether it stands in the table of runs, or of components of its kind.
    pub shown: bool,
    /// The metric.
    #[serde(flatten)]
    pub metric: &'static Metric,
}
