//! Spans and events for subscribers of the crate `tracing`, with the feature of that name. Without
//! the feature, no span or event is compiled. With the feature and without a subscriber, each span
//! or event costs the test of a cached number.
//!
//! | span, target `runtime` | level | fields |
//! |---|---|---|
//! | `submit` | debug | `operation`: a launch, copy or fill submitted to a GPU |
//! | `run` | debug | `instance`: a launch on the CPU, until it is complete |
//! | `load` | debug | `instance`, `bytes` of PTX: a module being loaded |
//! | `compile` | debug | `instance`: a variant compiled at run time |
//! | `wait` | debug | `device`: the host waits for a stream |
//!
//! | event | level | fields |
//! |---|---|---|
//! | `device chosen` | info | `device`, `reason`: the choice of [`Device::best`](crate::Device::best) |
//! | `device lost` | error | `loss` |
//! | `chosen by the clock` | info | `device`, `is_throttled`, `reason`: a choice of [`Device::choose_by_clock`](crate::Device::choose_by_clock) |
//! | `fallback` | warn | `loss`, `device`: the device on which [`Device::with_cpu_fallback`](crate::Device::with_cpu_fallback) continues |
//! | `memory reserved` | debug | `device`, `bytes`: a driver allocation of the pool |
//! | `memory taken`, `memory given back` | trace | `bytes`: a buffer of the pool |
//! | `store` | debug | `found`, `kept` or `failed`, of the cache on disk |

/// A span until the end of the scope.
macro_rules! span {
    ($name:literal $(, $($field:tt)*)?) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "runtime", $name $(, $($field)*)?).entered();
    };
}

/// Emits an event.
macro_rules! event {
    ($level:ident, $($field:tt)*) => {{
        #[cfg(feature = "tracing")]
        tracing::event!(target: "runtime", tracing::Level::$level, $($field)*);
    }};
}

/// Returns whether a subscriber is enabled for this target and level.
macro_rules! enabled {
    ($level:ident) => {{
        #[cfg(feature = "tracing")]
        let heard = tracing::enabled!(target: "runtime", tracing::Level::$level);
        #[cfg(not(feature = "tracing"))]
        let heard = false;
        heard
    }};
}

pub(crate) use {enabled, event, span};
