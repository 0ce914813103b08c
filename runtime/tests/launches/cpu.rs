//! Devices and buffers without a GPU: the features of the CPU device, and the errors without a
//! driver.

use kernel_dsl::compiler::hir::{self, Block, Expr, ExprKind, Instance, Local, Program, Type, TypeId, serial};
use kernel_dsl::compiler::source::{KernelSource, Span};
use kernel_dsl::compiler::{Scalar, Target, launch};
use kernel_dsl::launcher::{SliceArgument, SliceMutArgument, ViewMutArgument};
use kernel_dsl::{Argument, Artifact, Launcher};
use runtime::{Device, DeviceBuffer, Error};
use std::sync::Arc;

/// Builds `kernel(a: f32, x: &[f32], y: &mut [f32])` in one block of 32 threads, with an empty
/// body.
fn artifact(grid: u64) -> &'static Artifact {
    let number = |n| Expr { kind: ExprKind::Literal(n), ty: TypeId(3), span: Span::default() };
    let local = |name: &str, ty| Local {
        name: name.into(),
        ty: TypeId(ty),
        mutable: false,
        constant: false,
        late: false,
        span: Span::default(),
    };
    let types = vec![
        Type::Scalar(Scalar::F32),
        Type::Slice { element: TypeId(0), mutable: false },
        Type::Slice { element: TypeId(0), mutable: true },
        Type::Scalar(Scalar::Usize),
        Type::Unit,
    ];
    let function = hir::Function {
        name: "kernel".into(),
        hash: 0,
        source: KernelSource {
            name: "kernel".into(),
            file: "test.rs".into(),
            line: 1,
            text: vec!["fn kernel() {}".into()],
        },
        generics: vec![],
        types,
        locals: vec![local("a", 0), local("x", 1), local("y", 2)],
        parameters: 3,
        returns: TypeId(4),
        constant: None,
        allowances: vec![],
        private_to: 0,
        body: Block::default(),
    };
    let launch = hir::LaunchContract {
        block: vec![hir::BlockExtent::Computed(number(32))],
        grid: vec![number(grid)],
        requires: vec![],
        min_blocks: None,
        max_registers: None,
        contract: false,
        assertions: false,
        cooperative: false,
        target: Target::SM_61,
        instances: vec![hir::DeclaredInstance::default()],
        tolerances: vec![],
        outputs: vec![],
    };
    let hir = serial::encode_program(&Program { launch, functions: vec![function], items: Default::default() });
    Box::leak(Box::new(Artifact {
        name: "kernel",
        module: "test",
        file: "test.rs",
        line: 1,
        docs: "",
        target: Target::SM_61,
        hir: hir.leak(),
        parameters: &[],
        instances: &[],
    }))
}

#[test]
fn uploads_can_be_downloaded() {
    let device = Device::cpu();
    let mut x = device.upload(&[1.5f64, -0.0, f64::INFINITY]).unwrap();
    assert_eq!(x.download().unwrap(), [1.5, -0.0, f64::INFINITY]);
    x.copy_from(&[1.0, 2.0, 3.0]).unwrap();
    let mut y = [0.0; 3];
    x.copy_to(&mut y).unwrap();
    assert_eq!(y, [1.0, 2.0, 3.0]);
    assert_eq!(device.zeros::<i16>(5).unwrap().download().unwrap(), [0; 5]);
    assert!(device.alloc::<f32>(5).unwrap().download().unwrap().iter().all(|x| x.is_nan()));
    assert!(device.upload::<u8>(&[]).unwrap().download().unwrap().is_empty());
}

#[test]
fn copies_of_other_lengths_and_impossible_sizes_are_rejected() {
    let device = Device::cpu();
    let mut x = device.zeros::<f32>(3).unwrap();
    assert_eq!(
        x.copy_from(&[0.0; 4]).unwrap_err().to_string(),
        "cannot copy the 4 elements of the slice to the buffer, which has 3: both must have equal lengths"
    );
    assert!(matches!(x.copy_to(&mut [0.0; 2]), Err(Error::Length { .. })));
    let (start, end) = (2, 1);
    assert!(x.range(start..end).unwrap_err().to_string().ends_with("the range 2..1 ends before it starts"));
    assert!(x.range(1..4).unwrap_err().to_string().ends_with("the range 1..4 exceeds its length"));
    let stream = device.stream().unwrap();
    assert_eq!(
        stream.copy(&device.zeros::<f32>(2).unwrap(), &mut x).unwrap_err().to_string(),
        "cannot copy the 2 elements of the buffer to read to the buffer to write, which has 3: \
         both must have equal lengths"
    );
    assert_eq!(
        device.zeros::<f32>(0usize.wrapping_sub(1)).unwrap_err().to_string(),
        "cannot allocate 18446744073709551615 elements of f32: 73786976294838206460 bytes are more than any device \
         has; a length that is this large is often a difference below zero"
    );
    let exhausted = device.zeros::<u8>(isize::MAX as usize).unwrap_err();
    assert!(matches!(exhausted, Error::OutOfMemory { requested, .. } if requested == isize::MAX as usize));
    let exhausted = exhausted.to_string();
    assert!(exhausted.ends_with("no longer used, or process the data in smaller parts"), "{exhausted}");
    device.limit_memory(Some(1 << 20));
    let limited = device.zeros::<u8>(2 << 20).unwrap_err().to_string();
    assert!(limited.ends_with("1048576; raise the limit, or drop buffers that are no longer used"), "{limited}");
}

/// Checks that constants of another kernel are rejected when a kernel is loaded, before a launch.
#[test]
fn loading_checks_the_constants() {
    let device = Device::cpu();
    device.load(artifact(1), &[]).unwrap();
    let error = device.load(artifact(1), &[hir::Constant::Usize(3)]).unwrap_err();
    assert!(error.to_string().contains("`kernel` takes 0 generic arguments, 1 given"), "{error}");
}

#[test]
fn devices_and_buffers_can_be_sent_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Device>();
    shared::<runtime::DeviceBuffer<f32>>();
    shared::<Error>();
    let device = Device::cpu();
    std::thread::scope(|s| {
        for n in 0..8u32 {
            let device = &device;
            s.spawn(move || assert_eq!(device.upload(&vec![n; 1000]).unwrap().download().unwrap(), vec![n; 1000]));
        }
    });
}

#[test]
fn invalid_launch_is_rejected_with_all_mistakes() {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 4]).unwrap();
    let mut y = device.upload(&[1.0f64; 4]).unwrap();
    let arguments = [Argument::scalar(2.0f64), (&x).argument(), (&mut y).argument()];
    let error = device.launch(artifact(1), &[], None, &arguments).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot launch kernel:\n  argument `a`: expected `f32`, given `f64`\n  \
         argument `y`: expected `&mut [f32]`, given `&mut [f64]`"
    );
    let error = device.launch(artifact(1), &[], None, &arguments[..1]).unwrap_err();
    assert!(error.to_string().contains("expected 3 arguments (`a`, `x`, `y`), given 1"));
    let error = device.launch(artifact(1 << 31), &[], None, &[]).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }));
    // SAFETY: the launch is rejected before the kernel runs.
    let error = unsafe { device.launch_unchecked(artifact(1), &[], None, &arguments) }.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }));
}

#[test]
fn buffer_cannot_be_read_and_written_at_once() {
    let device = Device::cpu();
    let mut y = device.upload(&[1.0f32; 8]).unwrap();
    // The borrow checker rejects `&y` beside `&mut y`, but an erased argument can be cloned.
    let written = (&mut y).argument();
    let error =
        device.launch(artifact(1), &[], None, &[Argument::scalar(1.0f32), written.clone(), written]).unwrap_err();
    assert!(error.to_string().contains("arguments `x` and `y` overlap, and the kernel writes `y`"), "{error}");
}

/// Checks device-local values: each type has one value, shared by all clones of the device. The
/// value is dropped with the device, although it holds a buffer.
#[test]
fn device_local_values_are_dropped_with_the_device() {
    struct Table(DeviceBuffer<u32>, #[allow(dead_code, reason = "its count tells whether the table is gone")] Arc<()>);
    let (alive, device) = (Arc::new(()), Device::cpu());
    let made = |home: Device| Table(home.upload(&[3u32, 4]).unwrap(), alive.clone());
    let table = device.get_or_init_extension(made);
    assert!(Arc::ptr_eq(&table, &device.clone().get_or_init_extension::<Table>(|_| unreachable!("there is one"))));
    assert_eq!(*device.get_or_init_extension(|_| 7u8), 7);
    assert_eq!(table.0.download().unwrap(), [3, 4]);
    let other = Device::cpu().get_or_init_extension(made);
    assert!(!Arc::ptr_eq(&table, &other));
    drop((table, other));
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(device);
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[test]
fn memory_of_another_device_is_rejected() {
    let device = Device::cpu();
    let x = device.upload(&[1.0f32; 4]).unwrap();
    let mut y = device.upload(&[1.0f32; 4]).unwrap();
    let shape = kernel_dsl::launcher::ArgumentShape::Slice(4);
    // SAFETY: the memory is never accessed, because the launch is rejected.
    let foreign = unsafe { kernel_dsl::launcher::ArgumentMemory::new(Scalar::F32.into(), 7, 0x1000, shape, false) };
    let arguments = [Argument::scalar(1.0f32), Argument::Memory(foreign), (&mut y).argument()];
    let error = device.launch(artifact(1), &[], None, &arguments).unwrap_err();
    assert!(error.to_string().contains("argument `x`: its memory belongs to another device"), "{error}");
    // Another handle of the same device is accepted.
    let error =
        Device::cpu().launch(artifact(1), &[], None, &[Argument::scalar(1.0f32), (&x).argument(), (&mut y).argument()]);
    assert!(!matches!(error, Err(Error::Refused { .. })));
}

#[test]
fn views_are_checked_against_their_buffer() {
    let device = Device::cpu();
    let mut x = device.zeros::<f32>(15).unwrap();
    assert_eq!(x.view([3, 5]).unwrap().strides(), [5, 1]);
    assert_eq!(x.range(3..15).unwrap().extents(), [12]);
    assert!(matches!(x.view([4, 4]), Err(Error::View { .. })));
    assert!(matches!(x.view_strided_mut([2, 2], [1, 1]), Err(Error::View { .. })));
    let Argument::Memory(memory) = x.view_strided_mut([3, 4], [5, 1]).unwrap().argument() else {
        panic!("a view is memory")
    };
    assert_eq!(memory.shape().span(), 14);
}

#[test]
fn unreadable_hir_is_an_error() {
    let broken = Box::leak(Box::new(Artifact { hir: &[1, 0, 200], ..*artifact(1) }));
    let error = Device::cpu().launch(broken, &[], None, &[]).unwrap_err();
    assert!(error.to_string().starts_with("kernel kernel: 3 bytes are too few for a kernel's HIR"), "{error}");
}

#[test]
fn contract_agrees_with_the_compiler() {
    let program = artifact(1).program().unwrap();
    assert_eq!(
        launch::block(&hir::monomorphic(&program, &Instance::default()).unwrap()),
        Ok(kernel_dsl::compiler::ir::BlockExtents::fixed([32, 1, 1]))
    );
}

/// Checks the errors on a machine without a driver; `gpu.rs` has the tests with one.
#[test]
fn missing_driver_is_reported_by_every_constructor() {
    let Err(error) = Device::cuda(0) else { return };
    let best = Device::best().unwrap();
    assert!(best.is_cpu());
    let choice = best.choice().unwrap();
    assert_eq!(choice.device, "cpu (interpreter)");
    assert!(choice.reason.starts_with("no usable GPU: "));
    if let Error::NoDriver = error {
        assert!(error.to_string().contains("Needed: NVIDIA's driver"));
        assert!(choice.reason.contains("no CUDA driver"));
        let findings = runtime::doctor::examine();
        assert!(matches!(findings.driver, runtime::doctor::DriverFinding::Unusable { .. }));
        assert_eq!((findings.devices, findings.best), (vec![], Some(choice.clone())));
    }
}

/// Checks that a buffer over other code's memory uses it in place, and drops the owner at the end.
#[test]
fn adopted_memory_is_used_in_place() {
    let device = Device::cpu();
    let mut memory = vec![1.0f32, 2.0, 3.0];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    let owner = Arc::new(memory);
    // SAFETY: the vector has these elements, lives until the buffer's copy of `owner` is dropped,
    // and is not read meanwhile.
    let mut buffer = unsafe { device.adopt::<f32>(address, 3, Box::new(owner.clone())) }.unwrap();
    assert_eq!((buffer.len(), buffer.device_address()), (3, address));
    buffer.copy_from(&[4.0, 5.0, 6.0]).unwrap();
    assert_eq!(buffer.view([3]).unwrap().extents(), [3]);
    assert_eq!(buffer.download().unwrap(), [4.0, 5.0, 6.0]);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(buffer);
    assert_eq!((Arc::strong_count(&owner), &owner[..]), (1, &[4.0, 5.0, 6.0][..]));
}

/// Checks that new buffers of a device with a handler of launches are zeros, whatever an earlier
/// buffer had at the same address.
#[test]
fn a_device_with_a_handler_allocates_zeros() {
    let device = Device::cpu_with_handler(Device::cpu().facts(), Box::new(|_, _, _| Ok(())));
    for len in [1, 1000, 1 << 20] {
        drop(device.upload(&vec![7u32; len]).unwrap());
        for buffer in [device.zeros::<u32>(len).unwrap(), device.alloc(len).unwrap()] {
            assert!(buffer.download().unwrap().iter().all(|element| *element == 0));
        }
    }
    assert_eq!(device.memory().in_use, 0);
}
