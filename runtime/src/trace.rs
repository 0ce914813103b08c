//! What is told to subscribers of the crate `tracing`, with the feature of that name. Without it, nothing of this is compiled; with it and
//! without a subscriber, each is a look at a number that is already known.
//!
//! | span, target `runtime` | level | fields |
//! |---|---|---|
//! | `submit` | debug | `operation`: a launch, copy or fill that a GPU is given |
//! | `run` | debug | `instance`: a launch on the CPU, to its end |
//! | `load` | debug | `instance`, `bytes` of PTX: a module that is loaded |
//! | `compile` | debug | `instance`: a form that is made at run time |
//! | `wait` | debug | `device`: the host waits for a stream |
//!
//! | event | level | fields |
//! |---|---|---|
//! | `device chosen` | info | `device`, `reason`: what [`Device::best`](crate::Device::best) has done |
//! | `device lost` | error | `loss` |
//! | `fallback` | warn | `loss`, `device`: [`Device::with_cpu_fallback`](crate::Device::with_cpu_fallback) goes on there |
//! | `memory reserved` | debug | `device`, `bytes`: the pool asks the device |
//! | `memory taken`, `memory given back` | trace | `bytes`: a buffer of the pool's |
//! | `store` | debug | `found`, `kept` or `failed`, of the cache on disk |

/// A span until the end of the scope.
macro_rules! span {
    ($name:literal $(, $($field:tt)*)?) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "runtime", $name $(, $($field)*)?).entered();
    };
}

/// Something that has happened.
macro_rules! event {
    ($level:ident, $($field:tt)*) => {{
        #[cfg(feature = "tracing")]
        tracing::event!(target: "runtime", tracing::Level::$level, $($field)*);
    }};
}

/// Whether somebody is told of such an event.
macro_rules! hears {
    ($level:ident) => {{
        #[cfg(feature = "tracing")]
        let heard = tracing::enabled!(target: "runtime", tracing::Level::$level);
        #[cfg(not(feature = "tracing"))]
        let heard = false;
        heard
    }};
}

pub(crate) use {event, hears, span};
