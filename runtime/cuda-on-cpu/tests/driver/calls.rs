//! Calls outside cudarc's safe API: box copies, all forms of parameters, attributes of addresses,
//! host functions.

use super::common::inside;
use super::raw::{Pointer, allocate, context, event, function, gives, launch_in, read, stream};
use cudarc::driver::sys::{self, CUmemorytype as Type, CUpointer_attribute as Attribute, CUresult::*};
use std::ffi::c_void;
use std::ptr::{self, null_mut};

#[test]
fn rectangles_and_boxes_are_copied() {
    inside!("rectangles_and_boxes_are_copied", &[], || {
        context();
        let (mut at, mut pitch) = (0, 0);
        gives!(CUDA_SUCCESS, cuMemAllocPitch_v2(&mut at, &mut pitch, 10, 6, 4));
        assert_eq!(pitch % 512, 0);
        gives!(CUDA_SUCCESS, cuMemsetD2D8_v2(at, pitch, 0xEE, 10, 6));
        let host: Vec<u8> = (0..60).collect();
        // A box of 4 × 3 bytes from (2, 1) of the host's 10 × 6 to (5, 2) of the device's.
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 2,
            srcY: 1,
            srcMemoryType: Type::CU_MEMORYTYPE_HOST,
            srcHost: host.as_ptr().cast(),
            srcDevice: 0,
            srcArray: null_mut(),
            srcPitch: 10,
            dstXInBytes: 5,
            dstY: 2,
            dstMemoryType: Type::CU_MEMORYTYPE_DEVICE,
            dstHost: null_mut(),
            dstDevice: at,
            dstArray: null_mut(),
            dstPitch: pitch,
            WidthInBytes: 4,
            Height: 3,
        };
        gives!(CUDA_SUCCESS, cuMemcpy2D_v2(&copy));
        gives!(CUDA_SUCCESS, cuMemcpy2DUnaligned_v2(&copy));
        for row in 0..6 {
            let mut expected = [0xEE; 10];
            if (2..5).contains(&row) {
                let from = 10 * (row - 1) + 2;
                expected[5..9].copy_from_slice(&host[from..from + 4]);
            }
            assert_eq!(read::<10>(at + (row * pitch) as u64), expected, "row {row}");
        }
        // A box past the end, and overlapping rows.
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&sys::CUDA_MEMCPY2D { dstY: 4, ..copy }));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&sys::CUDA_MEMCPY2D { dstPitch: 3, ..copy }));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&sys::CUDA_MEMCPY2D { dstY: usize::MAX, ..copy }));
        gives!(
            CUDA_ERROR_INVALID_HANDLE,
            cuMemcpy2D_v2(&sys::CUDA_MEMCPY2D { srcMemoryType: Type::CU_MEMORYTYPE_ARRAY, ..copy })
        );

        // Copies two layers of 2 × 2 bytes back to the host. The source has layers of 3 rows.
        let mut back = [0u8; 8];
        let cube = sys::CUDA_MEMCPY3D {
            srcXInBytes: 5,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: Type::CU_MEMORYTYPE_UNIFIED,
            srcHost: ptr::null(),
            srcDevice: at,
            srcArray: null_mut(),
            reserved0: null_mut(),
            srcPitch: pitch,
            srcHeight: 3,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: Type::CU_MEMORYTYPE_HOST,
            dstHost: back.as_mut_ptr().cast(),
            dstDevice: 0,
            dstArray: null_mut(),
            reserved1: null_mut(),
            dstPitch: 2,
            dstHeight: 2,
            WidthInBytes: 2,
            Height: 2,
            Depth: 2,
        };
        gives!(CUDA_SUCCESS, cuMemcpy3D_v2(&cube));
        assert_eq!(back, [0xEE, 0xEE, 0xEE, 0xEE, 22, 23, 32, 33]);
    });
}

#[test]
fn fills_repeat_elements_of_each_size() {
    inside!("fills_repeat_elements_of_each_size", &[], || {
        context();
        let at = allocate(32);
        let s = stream();
        gives!(CUDA_SUCCESS, cuMemsetD8_v2(at, 1, 32));
        gives!(CUDA_SUCCESS, cuMemsetD16_v2(at + 2, 0x0302, 2));
        gives!(CUDA_SUCCESS, cuMemsetD32Async(at + 8, 0x0706_0504, 2, s));
        gives!(CUDA_SUCCESS, cuMemsetD2D16Async(at + 16, 8, 0x0908, 1, 2, s));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(s));
        let mut expected = [1; 32];
        expected[2..6].copy_from_slice(&[2, 3, 2, 3]);
        expected[8..16].copy_from_slice(&[4, 5, 6, 7, 4, 5, 6, 7]);
        expected[16..18].copy_from_slice(&[8, 9]);
        expected[24..26].copy_from_slice(&[8, 9]);
        assert_eq!(read::<32>(at), expected);
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2(at + 1, 0, 1));
    });
}

#[test]
fn parameters_are_passed_in_both_forms() {
    inside!("parameters_are_passed_in_both_forms", &[], || {
        context();
        let gather = function("gather");
        let out = allocate(40);
        let mut expected = [0u8; 40];
        expected[8..16].fill(2);
        expected[16..18].fill(3);
        expected[24..36].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        expected[0] = 1;
        let (mut a, mut b, mut c, mut to) = (1u8, 0x0202_0202_0202_0202u64, 0x0303u16, out);
        let mut d: [u8; 12] = std::array::from_fn(|i| i as u8 + 1);
        let mut pointers: [*mut c_void; 5] = [
            ptr::from_mut(&mut a).cast(),
            ptr::from_mut(&mut b).cast(),
            ptr::from_mut(&mut c).cast(),
            ptr::from_mut(&mut d).cast(),
            ptr::from_mut(&mut to).cast(),
        ];
        let none = null_mut();
        gives!(CUDA_SUCCESS, cuMemsetD8_v2(out, 0, 40));
        gives!(CUDA_SUCCESS, cuLaunchKernel(gather, 1, 1, 1, 1, 1, 1, 0, none, pointers.as_mut_ptr(), null_mut()));
        assert_eq!(read::<40>(out), expected);

        // The expected offsets: each parameter at the next multiple of its alignment.
        let mut buffer = [0u8; 48];
        buffer[0] = a;
        buffer[8..16].copy_from_slice(&b.to_le_bytes());
        buffer[16..18].copy_from_slice(&c.to_le_bytes());
        buffer[24..36].copy_from_slice(&d);
        buffer[40..48].copy_from_slice(&out.to_le_bytes());
        let mut size = buffer.len();
        let (end, is_buffer, is_size) = (null_mut(), ptr::without_provenance_mut(1), ptr::without_provenance_mut(2));
        let mut extra: [*mut c_void; 5] =
            [is_buffer, buffer.as_mut_ptr().cast(), is_size, ptr::from_mut(&mut size).cast(), end];
        gives!(CUDA_SUCCESS, cuMemsetD8_v2(out, 0, 40));
        gives!(CUDA_SUCCESS, cuLaunchKernel(gather, 1, 1, 1, 1, 1, 1, 0, none, null_mut(), extra.as_mut_ptr()));
        assert_eq!(read::<40>(out), expected);
        let both = pointers.as_mut_ptr();
        gives!(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(gather, 1, 1, 1, 1, 1, 1, 0, none, both, extra.as_mut_ptr()));
        size = 47;
        extra[3] = ptr::from_mut(&mut size).cast();
        gives!(
            CUDA_ERROR_INVALID_VALUE,
            cuLaunchKernel(gather, 1, 1, 1, 1, 1, 1, 0, none, null_mut(), extra.as_mut_ptr())
        );
    });
}

/// Returns an attribute of an address.
fn attribute<T: Default>(attribute: Attribute, address: Pointer) -> T {
    let mut value = T::default();
    gives!(CUDA_SUCCESS, cuPointerGetAttribute(ptr::from_mut(&mut value).cast(), attribute, address));
    value
}

#[test]
fn pointer_attributes_are_correct() {
    inside!("pointer_attributes_are_correct", &[], || {
        let context = context();
        let at = allocate(100);
        assert_eq!(attribute::<usize>(Attribute::CU_POINTER_ATTRIBUTE_CONTEXT, at), context.addr());
        assert_eq!(attribute::<u32>(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 99), 2);
        assert_eq!(attribute::<u64>(Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 50), at);
        assert_eq!(attribute::<u64>(Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + 50), 100);
        assert_eq!(attribute::<i32>(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at), 0);
        let mut pinned = null_mut();
        gives!(CUDA_SUCCESS, cuMemHostAlloc(&mut pinned, 8, 2));
        let address = pinned.addr() as u64;
        assert_eq!(attribute::<u32>(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address), 1);
        assert_eq!(attribute::<u64>(Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER, address), address);
        let (mut start, mut bytes, mut flags) = (0, 0, 0);
        gives!(CUDA_SUCCESS, cuMemHostGetFlags(&mut flags, pinned));
        assert_eq!(flags, 2);
        gives!(CUDA_SUCCESS, cuMemHostGetDevicePointer_v2(&mut start, pinned, 0));
        assert_eq!(start, address);
        gives!(CUDA_SUCCESS, cuMemGetAddressRange_v2(&mut start, &mut bytes, at + 7));
        assert_eq!((start, bytes), (at, 100));
        gives!(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&mut start, &mut bytes, at + 100));
        let mut kind = 0u32;
        let to = ptr::from_mut(&mut kind).cast();
        let memory_type = Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        gives!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(to, memory_type, 64));
        gives!(CUDA_SUCCESS, cuMemFreeHost(pinned));
        gives!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(to, memory_type, address));
    });
}

#[test]
fn pool_memory_is_stream_ordered() {
    inside!("pool_memory_is_stream_ordered", &[], || {
        context();
        let s = stream();
        let (mut pool, mut at, mut used) = (null_mut(), 0, 0u64);
        gives!(CUDA_SUCCESS, cuDeviceGetDefaultMemPool(&mut pool, 0));
        gives!(CUDA_SUCCESS, cuMemAllocAsync(&mut at, 64, s));
        let current = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
        gives!(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, current, ptr::from_mut(&mut used).cast()));
        assert_eq!(used, 64);
        gives!(CUDA_SUCCESS, cuMemsetD8Async(at, 5, 64, s));
        let kept = allocate(64);
        gives!(CUDA_SUCCESS, cuMemcpyDtoDAsync_v2(kept, at, 64, s));
        gives!(CUDA_SUCCESS, cuMemFreeAsync(at, s));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(at, 5, 64, s));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(s));
        assert_eq!(read::<64>(kept), [5; 64]);
        gives!(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, current, ptr::from_mut(&mut used).cast()));
        assert_eq!(used, 0);
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    });
}

/// Checks the codes of NVIDIA's driver 580 on an H200. A location is a type and a number: 1 is a
/// device, 2 the host.
#[test]
fn pools_are_accessible_to_their_device() {
    inside!("pools_are_accessible_to_their_device", &[], || {
        context();
        let mut pool = null_mut();
        gives!(CUDA_SUCCESS, cuDeviceGetDefaultMemPool(&mut pool, 0));
        for (location, code, expected) in [
            ([1u32, 0], CUDA_SUCCESS, 3),
            ([1, 5], CUDA_ERROR_INVALID_VALUE, 77),
            ([0, 0], CUDA_ERROR_INVALID_VALUE, 77),
            ([2, 0], CUDA_SUCCESS, 0),
        ] {
            let (mut location, mut access) = (location, 77u32);
            let (to, at) = (ptr::from_mut(&mut access).cast(), ptr::from_mut(&mut location).cast());
            gives!(code, cuMemPoolGetAccess(to, pool, at));
            assert_eq!(access, expected, "{location:?}");
        }
        for (description, code) in [
            ([1u32, 0, 3], CUDA_SUCCESS),
            ([1, 0, 1], CUDA_ERROR_NOT_SUPPORTED),
            ([1, 0, 0], CUDA_ERROR_INVALID_DEVICE),
            ([1, 0, 2], CUDA_ERROR_INVALID_VALUE),
            ([1, 5, 3], CUDA_ERROR_INVALID_DEVICE),
            ([0, 0, 3], CUDA_ERROR_NOT_SUPPORTED),
            ([2, 0, 3], CUDA_ERROR_NOT_SUPPORTED),
        ] {
            gives!(code, cuMemPoolSetAccess(pool, description.as_ptr().cast(), 1));
        }
        gives!(CUDA_SUCCESS, cuMemPoolSetAccess(pool, [1u32, 0, 3].as_ptr().cast(), 0));
        gives!(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, ptr::null(), 0));
    });
}

#[test]
fn host_functions_are_called_in_order() {
    unsafe extern "C" fn note(data: *mut c_void) {
        let mut address = 0;
        gives!(CUDA_ERROR_NOT_PERMITTED, cuMemAlloc_v2(&mut address, 4));
        // SAFETY: `data` is the test's list, which has no other user meanwhile.
        let list = unsafe { &mut *data.cast::<Vec<u32>>() };
        list.push(list.len() as u32);
    }
    inside!("host_functions_are_called_in_order", &[], || {
        context();
        let s = stream();
        let mut list: Vec<u32> = Vec::new();
        for _ in 0..10 {
            gives!(CUDA_SUCCESS, cuLaunchHostFunc(s, Some(note), ptr::from_mut(&mut list).cast()));
        }
        gives!(CUDA_SUCCESS, cuStreamSynchronize(s));
        gives!(CUDA_SUCCESS, cuStreamQuery(s));
        assert_eq!(list, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });
}

#[test]
fn graphs_are_built_node_by_node() {
    inside!("graphs_are_built_node_by_node", &[], || {
        context();
        let (store, at, s) = (function("store"), allocate(8), stream());
        let mut arguments = [(at, 1u32), (at + 4, 2), (at + 4, 9)];
        let mut pointers = arguments
            .each_mut()
            .map(|(to, value)| -> [*mut c_void; 2] { [ptr::from_mut(to).cast(), ptr::from_mut(value).cast()] });
        let node = |pointers: &mut [*mut c_void; 2]| sys::CUDA_KERNEL_NODE_PARAMS_v1 {
            func: store,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: pointers.as_mut_ptr(),
            extra: null_mut(),
        };
        let [one, two, nine] = pointers.each_mut().map(node);
        let (mut graph, mut other, mut executable, mut nodes) = (null_mut(), null_mut(), null_mut(), 0);
        let (mut first, mut second, mut foreign, mut late) = (null_mut(), null_mut(), null_mut(), null_mut());
        gives!(CUDA_SUCCESS, cuGraphCreate(&mut graph, 0));
        gives!(CUDA_SUCCESS, cuGraphCreate(&mut other, 0));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphCreate(&mut other, 1));
        gives!(CUDA_SUCCESS, cuGraphAddKernelNode(&mut first, graph, ptr::null(), 0, &one));
        gives!(CUDA_SUCCESS, cuGraphAddKernelNode(&mut second, graph, &first, 1, &two));
        gives!(CUDA_SUCCESS, cuGraphAddKernelNode(&mut foreign, other, ptr::null(), 0, &two));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&mut late, graph, &foreign, 1, &two));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&mut late, graph, ptr::null(), 1, &two));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&mut late, graph, ptr::null(), 0, ptr::null()));
        let none = sys::CUDA_KERNEL_NODE_PARAMS_v1 { gridDimX: 0, ..two };
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphAddKernelNode(&mut late, graph, ptr::null(), 0, &none));
        gives!(CUDA_SUCCESS, cuGraphGetNodes(graph, null_mut(), &mut nodes));
        assert_eq!(nodes, 2);
        gives!(CUDA_SUCCESS, cuGraphInstantiate_v2(&mut executable, graph, null_mut(), null_mut(), 0));
        gives!(CUDA_SUCCESS, cuGraphLaunch(executable, s));
        // A changed parameter applies to later launches.
        gives!(CUDA_SUCCESS, cuGraphExecKernelNodeSetParams(executable, second, &nine));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(s));
        assert_eq!(read::<8>(at), [1, 0, 0, 0, 2, 0, 0, 0]);
        gives!(CUDA_SUCCESS, cuGraphLaunch(executable, s));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(s));
        assert_eq!(read::<8>(at), [1, 0, 0, 0, 9, 0, 0, 0]);
        gives!(CUDA_SUCCESS, cuGraphAddKernelNode(&mut late, graph, ptr::null(), 0, &two));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(executable, late, &two));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(executable, foreign, &two));
        gives!(CUDA_SUCCESS, cuGraphDestroy(graph));
        // Destroying a graph destroys its nodes, but not its executables.
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(executable, second, &two));
        gives!(CUDA_SUCCESS, cuGraphLaunch(executable, s));
        gives!(CUDA_SUCCESS, cuGraphExecDestroy(executable));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(s));
    });
}

#[test]
fn captures_include_forked_streams() {
    inside!("captures_include_forked_streams", &[], || {
        context();
        let (store, at) = (function("store"), allocate(8));
        let ([first, second], [forked, joined]) = ([stream(), stream()], [event(), event()]);
        let global = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        let begin = || gives!(CUDA_SUCCESS, cuStreamBeginCapture_v2(first, global));
        let fork = || {
            gives!(CUDA_SUCCESS, cuEventRecord(forked, first));
            gives!(CUDA_SUCCESS, cuStreamWaitEvent(second, forked, 0));
            assert_eq!(launch_in(second, store, &mut [at + 4, 2]), CUDA_SUCCESS);
        };
        let (mut graph, mut executable, mut nodes) = (null_mut(), null_mut(), 0);
        begin();
        assert_eq!(launch_in(first, store, &mut [at, 1]), CUDA_SUCCESS);
        fork();
        gives!(CUDA_SUCCESS, cuEventRecord(joined, second));
        gives!(CUDA_SUCCESS, cuStreamWaitEvent(first, joined, 0));
        gives!(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(second, &mut graph));
        gives!(CUDA_SUCCESS, cuStreamEndCapture(first, &mut graph));
        gives!(CUDA_SUCCESS, cuGraphGetNodes(graph, null_mut(), &mut nodes));
        assert_eq!(nodes, 2);
        gives!(CUDA_SUCCESS, cuGraphInstantiate_v2(&mut executable, graph, null_mut(), null_mut(), 0));
        gives!(CUDA_SUCCESS, cuGraphDestroy(graph));
        gives!(CUDA_SUCCESS, cuMemsetD8_v2(at, 0, 8));
        gives!(CUDA_SUCCESS, cuGraphLaunch(executable, second));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(second));
        assert_eq!(read::<8>(at), [1, 0, 0, 0, 2, 0, 0, 0]);
        gives!(CUDA_SUCCESS, cuGraphExecDestroy(executable));
        gives!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, second));

        // A stream that does not join the origin stream.
        begin();
        fork();
        gives!(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(first, &mut graph));
        // Waits that are invalid while a stream captures: each invalidates the capture.
        begin();
        gives!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(first));
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        gives!(CUDA_SUCCESS, cuStreamIsCapturing(first, &mut status));
        assert_eq!(status, sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED);
        assert_eq!(launch_in(first, store, &mut [at, 1]), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        gives!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(first, &mut graph));
        assert!(graph.is_null());
        // An event recorded outside of the capture.
        let outside = event();
        gives!(CUDA_SUCCESS, cuEventRecord(outside, second));
        begin();
        gives!(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(first, outside, 0));
        gives!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(first, &mut graph));
        // An event of the capture, used outside of it.
        begin();
        gives!(CUDA_SUCCESS, cuEventRecord(forked, first));
        gives!(CUDA_SUCCESS, cuStreamEndCapture(first, &mut graph));
        gives!(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(forked));
        gives!(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(first, &mut graph));
        // The legacy stream would wait for a blocking stream.
        let mut blocking = null_mut();
        gives!(CUDA_SUCCESS, cuStreamCreate(&mut blocking, 0));
        gives!(CUDA_SUCCESS, cuStreamBeginCapture_v2(blocking, global));
        assert_eq!(launch_in(null_mut(), store, &mut [at, 1]), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        gives!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &mut graph));
        gives!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(null_mut(), global));
        gives!(CUDA_SUCCESS, cuStreamSynchronize(first));
    });
}

#[test]
fn linked_modules_load_and_run() {
    inside!("linked_modules_load_and_run", &[], || {
        context();
        let ptx = sys::CUjitInputType::CU_JIT_INPUT_PTX;
        let (mut link, mut image, mut bytes) = (null_mut(), null_mut(), 0);
        let compile = |text: &'static std::ffi::CStr, link| {
            let (data, size) = (text.as_ptr().cast_mut().cast(), text.count_bytes() + 1);
            // SAFETY: the text has `size` bytes, and there are no options.
            unsafe { sys::cuLinkAddData_v2(link, ptx, data, size, c"a".as_ptr(), 0, null_mut(), null_mut()) }
        };
        gives!(CUDA_SUCCESS, cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link));
        assert_eq!(compile(c".version 6.0 .target sm_61 .address_size 64 nonsense", link), CUDA_ERROR_INVALID_PTX);
        let good = c".version 6.0 .target sm_61 .address_size 64 .visible .entry seven(.param .u64 to) {
            .reg .u64 %a; .reg .u32 %n; ld.param.u64 %a, [to]; mov.u32 %n, 7; st.global.u32 [%a], %n; ret; }";
        assert_eq!(compile(good, link), CUDA_SUCCESS);
        gives!(CUDA_SUCCESS, cuLinkComplete(link, &mut image, &mut bytes));
        // SAFETY: the image has `bytes` bytes and lives until the link state is destroyed.
        let kept = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec();
        gives!(CUDA_SUCCESS, cuLinkDestroy(link));
        gives!(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
        let (mut module, mut seven) = (null_mut(), null_mut());
        gives!(CUDA_SUCCESS, cuModuleLoadData(&mut module, kept.as_ptr().cast()));
        gives!(CUDA_SUCCESS, cuModuleGetFunction(&mut seven, module, c"seven".as_ptr()));
        let at = allocate(4);
        assert_eq!(launch_in(null_mut(), seven, &mut [at]), CUDA_SUCCESS);
        assert_eq!(read(at), 7u32.to_le_bytes());
        gives!(CUDA_SUCCESS, cuModuleUnload(module));
    });
}
