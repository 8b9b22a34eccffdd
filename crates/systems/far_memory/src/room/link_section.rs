//! Keys of DRAM and of paths, which several parts of the machine have.

use flashyard_describe::{Rate, Size, Time};
use flashyard_memory::{DramConfig, PathConfig};
use schemars::JsonSchema;
use serde::Deserialize;

/// DRAM.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DramSection {
    /// Channels.
    #[schemars(range(min = 1, max = 1024))]
    channels: u32,
    /// Banks of a channel, over all ranks.
    #[schemars(range(min = 1, max = 4096))]
    banks: u32,
    /// Size of an open row.
    #[schemars(extend("x-minimum" = "64 B", "x-maximum" = "1 MiB"))]
    row: Size,
    /// tRP.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    precharge: Time,
    /// tRCD.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    activate: Time,
    /// tCAS.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    column: Time,
    /// A line on the bus of a channel.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    burst: Time,
    /// Controller and wires, both ways.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    controller: Time,
}

/// A path to an endpoint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PathSection {
    /// Rate of the endpoint's link on the wire, each direction.
    #[schemars(extend("x-minimum" = "1 MB/s", "x-maximum" = "10000 GB/s"))]
    link_rate: Rate,
    /// Root port, endpoint port and wires, one way.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    port: Time,
    /// Switches on the way.
    #[schemars(range(min = 0, max = 64))]
    switches: u32,
    /// A switch, one way.
    #[schemars(extend("x-minimum" = "0 ns", "x-maximum" = "1 ms"))]
    switch: Time,
}

impl DramSection {
    pub(super) fn config(&self) -> DramConfig {
        DramConfig {
            channels: self.channels,
            banks: self.banks,
            row_bytes: self.row.0.get() as u32,
            precharge: self.precharge.0,
            activate: self.activate.0,
            column: self.column.0,
            burst: self.burst.0,
            controller: self.controller.0,
        }
    }
}

impl PathSection {
    pub(super) fn config(&self) -> PathConfig {
        let Self { link_rate, port, switches, switch } = self;
        PathConfig { link_rate: link_rate.0, port: port.0, switches: *switches, switch: switch.0 }
    }
}
