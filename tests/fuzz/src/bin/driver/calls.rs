//! Sequences of calls with valid, stale and foreign handles.

use super::Run;
use super::api::{Function, Library, print};
use cudarc::driver::sys;
use runtime::testing::Random;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

/// A kind of handle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum HandleKind {
    Context,
    Memory,
    /// Memory of the host that the driver allocated.
    Host,
    Module,
    Kernel,
    Stream,
    Event,
    Graph,
    Node,
    Executable,
    Link,
    Library,
    /// A kernel of a library.
    LibraryKernel,
    Array,
    Pool,
}

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
enum Take {
    /// A handle, which may be stale, of another kind, or any number.
    In(HandleKind),
    /// The location for a new handle.
    Out(HandleKind),
    /// A handle whose object the call destroys.
    End(HandleKind),
    /// The location for any result.
    Result,
    /// A number of bytes or elements.
    Size,
    /// A number of bytes of the host's buffer.
    Part,
    /// An enumeration, flag, or device.
    Small,
    /// Any number of 32 bits.
    Word,
    /// An extent of a grid or block.
    Extent,
    /// The host's buffer.
    Buffer,
    /// The name of a kernel or variable.
    Name,
    /// A module's text.
    Image,
    /// The length of the module's text before it.
    Length,
    /// Pointers to the parameters of a launch.
    Parameters,
    /// One or two nodes.
    Nodes,
    /// The number of nodes.
    Two,
    KernelNode,
    MemsetNode,
    Copy,
    ArrayExtents,
    Null,
}

use HandleKind::*;
use Take::*;

/// Functions of the driver, and what they take.
const CALLS: &[(&str, &[Take])] = &[
    ("cuCtxCreate_v2", &[Out(Context), Small, Small]),
    ("cuCtxDestroy_v2", &[End(Context)]),
    ("cuCtxSetCurrent", &[In(Context)]),
    ("cuCtxPushCurrent_v2", &[In(Context)]),
    ("cuCtxPopCurrent_v2", &[Out(Context)]),
    ("cuCtxGetCurrent", &[Out(Context)]),
    ("cuCtxGetDevice", &[Result]),
    ("cuCtxGetLimit", &[Result, Small]),
    ("cuCtxSetLimit", &[Small, Size]),
    ("cuCtxSynchronize", &[]),
    ("cuDevicePrimaryCtxRetain", &[Out(Context), Small]),
    ("cuDevicePrimaryCtxRelease_v2", &[Small]),
    ("cuDevicePrimaryCtxReset_v2", &[Small]),
    ("cuDeviceGetAttribute", &[Result, Word, Small]),
    ("cuMemAlloc_v2", &[Out(Memory), Size]),
    ("cuMemAllocManaged", &[Out(Memory), Size, Small]),
    ("cuMemAllocPitch_v2", &[Out(Memory), Result, Size, Extent, Small]),
    ("cuMemFree_v2", &[End(Memory)]),
    ("cuMemHostAlloc", &[Out(Host), Size, Small]),
    ("cuMemFreeHost", &[End(Host)]),
    ("cuMemHostGetDevicePointer_v2", &[Out(Memory), In(Host), Small]),
    ("cuMemHostGetFlags", &[Result, In(Host)]),
    ("cuMemGetAddressRange_v2", &[Result, Result, In(Memory)]),
    ("cuMemGetInfo_v2", &[Result, Result]),
    ("cuPointerGetAttribute", &[Result, Small, In(Memory)]),
    ("cuMemcpyHtoD_v2", &[In(Memory), Buffer, Part]),
    ("cuMemcpyDtoH_v2", &[Buffer, In(Memory), Part]),
    ("cuMemcpyDtoD_v2", &[In(Memory), In(Memory), Size]),
    ("cuMemcpyHtoDAsync_v2", &[In(Memory), Buffer, Part, In(Stream)]),
    ("cuMemcpyDtoHAsync_v2", &[Buffer, In(Memory), Part, In(Stream)]),
    ("cuMemcpyDtoDAsync_v2", &[In(Memory), In(Memory), Size, In(Stream)]),
    ("cuMemcpyPeer", &[In(Memory), In(Context), In(Memory), In(Context), Size]),
    ("cuMemcpy3D_v2", &[Copy]),
    ("cuMemcpy3DAsync_v2", &[Copy, In(Stream)]),
    ("cuMemsetD8_v2", &[In(Memory), Word, Size]),
    ("cuMemsetD16_v2", &[In(Memory), Word, Size]),
    ("cuMemsetD32_v2", &[In(Memory), Word, Size]),
    ("cuMemsetD32Async", &[In(Memory), Word, Size, In(Stream)]),
    ("cuMemsetD2D32_v2", &[In(Memory), Size, Word, Size, Size]),
    ("cuMemAllocAsync", &[Out(Memory), Size, In(Stream)]),
    ("cuMemAllocFromPoolAsync", &[Out(Memory), Size, In(Pool), In(Stream)]),
    ("cuMemFreeAsync", &[End(Memory), In(Stream)]),
    ("cuDeviceGetDefaultMemPool", &[Out(Pool), Small]),
    ("cuDeviceSetMemPool", &[Small, In(Pool)]),
    ("cuMemPoolTrimTo", &[In(Pool), Size]),
    ("cuMemPoolDestroy", &[End(Pool)]),
    ("cuModuleLoadData", &[Out(Module), Image]),
    ("cuModuleUnload", &[End(Module)]),
    ("cuModuleGetFunction", &[Out(Kernel), In(Module), Name]),
    ("cuModuleGetGlobal_v2", &[Out(Memory), Result, In(Module), Name]),
    ("cuLibraryLoadData", &[Out(Library), Image, Null, Null, Null, Null, Null, Null]),
    ("cuLibraryUnload", &[End(Library)]),
    ("cuLibraryGetKernel", &[Out(LibraryKernel), In(Library), Name]),
    ("cuLibraryGetModule", &[Out(Module), In(Library)]),
    ("cuKernelGetFunction", &[Out(Kernel), In(LibraryKernel)]),
    ("cuLinkCreate_v2", &[Null, Null, Null, Out(Link)]),
    ("cuLinkAddData_v2", &[In(Link), Small, Image, Length, Name, Null, Null, Null]),
    ("cuLinkComplete", &[In(Link), Result, Result]),
    ("cuLinkDestroy", &[End(Link)]),
    ("cuFuncGetAttribute", &[Result, Small, In(Kernel)]),
    ("cuFuncSetAttribute", &[In(Kernel), Small, Word]),
    ("cuFuncGetModule", &[Out(Module), In(Kernel)]),
    ("cuOccupancyMaxActiveBlocksPerMultiprocessor", &[Result, In(Kernel), Extent, Size]),
    (
        "cuLaunchKernel",
        &[In(Kernel), Extent, Extent, Extent, Extent, Extent, Extent, Part, In(Stream), Parameters, Null],
    ),
    (
        "cuLaunchCooperativeKernel",
        &[In(Kernel), Extent, Extent, Extent, Extent, Extent, Extent, Part, In(Stream), Parameters],
    ),
    ("cuStreamCreate", &[Out(Stream), Small]),
    ("cuStreamCreateWithPriority", &[Out(Stream), Small, Word]),
    ("cuStreamDestroy_v2", &[End(Stream)]),
    ("cuStreamSynchronize", &[In(Stream)]),
    ("cuStreamQuery", &[In(Stream)]),
    ("cuStreamGetCtx", &[In(Stream), Out(Context)]),
    ("cuStreamWaitEvent", &[In(Stream), In(Event), Small]),
    ("cuStreamBeginCapture_v2", &[In(Stream), Small]),
    ("cuStreamEndCapture", &[In(Stream), Out(Graph)]),
    ("cuStreamIsCapturing", &[In(Stream), Result]),
    ("cuEventCreate", &[Out(Event), Small]),
    ("cuEventRecord", &[In(Event), In(Stream)]),
    ("cuEventQuery", &[In(Event)]),
    ("cuEventSynchronize", &[In(Event)]),
    ("cuEventElapsedTime", &[Result, In(Event), In(Event)]),
    ("cuEventDestroy_v2", &[End(Event)]),
    ("cuGraphCreate", &[Out(Graph), Small]),
    ("cuGraphDestroy", &[End(Graph)]),
    ("cuGraphClone", &[Out(Graph), In(Graph)]),
    ("cuGraphAddEmptyNode", &[Out(Node), In(Graph), Nodes, Two]),
    ("cuGraphAddKernelNode", &[Out(Node), In(Graph), Nodes, Two, KernelNode]),
    ("cuGraphAddMemsetNode", &[Out(Node), In(Graph), Nodes, Two, MemsetNode, In(Context)]),
    ("cuGraphAddMemcpyNode", &[Out(Node), In(Graph), Nodes, Two, Copy, In(Context)]),
    ("cuGraphAddChildGraphNode", &[Out(Node), In(Graph), Nodes, Two, In(Graph)]),
    ("cuGraphAddEventRecordNode", &[Out(Node), In(Graph), Nodes, Two, In(Event)]),
    ("cuGraphAddEventWaitNode", &[Out(Node), In(Graph), Nodes, Two, In(Event)]),
    ("cuGraphAddDependencies", &[In(Graph), Nodes, Nodes, Two]),
    ("cuGraphRemoveDependencies", &[In(Graph), Nodes, Nodes, Two]),
    ("cuGraphDestroyNode", &[End(Node)]),
    ("cuGraphNodeGetType", &[In(Node), Result]),
    ("cuGraphNodeFindInClone", &[Out(Node), In(Node), In(Graph)]),
    ("cuGraphKernelNodeSetParams", &[In(Node), KernelNode]),
    ("cuGraphInstantiateWithFlags", &[Out(Executable), In(Graph), Small]),
    ("cuGraphExecKernelNodeSetParams", &[In(Executable), In(Node), KernelNode]),
    ("cuGraphExecUpdate", &[In(Executable), In(Graph), Result, Result]),
    ("cuGraphLaunch", &[In(Executable), In(Stream)]),
    ("cuGraphExecDestroy", &[End(Executable)]),
    ("cuArrayCreate_v2", &[Out(Array), ArrayExtents]),
    ("cuArrayGetDescriptor_v2", &[Buffer, In(Array)]),
    ("cuArrayDestroy", &[End(Array)]),
    ("cuMemcpyHtoA_v2", &[In(Array), Size, Buffer, Part]),
    ("cuMemcpyAtoH_v2", &[Buffer, In(Array), Size, Part]),
];

/// Calls after which there may be no context.
const ENDS: [&str; 5] = [
    "cuCtxDestroy_v2",
    "cuCtxSetCurrent",
    "cuCtxPopCurrent_v2",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset_v2",
];

/// The calls of a sequence.
const CALLS_EACH: usize = 40;

/// The bytes of the host's buffer.
const BUFFER: usize = 1 << 20;

/// Modules: one with several kernels and variables, an empty one, and one that is damaged.
const IMAGES: [&CStr; 3] = [
    // The file has no NUL.
    match CStr::from_bytes_with_nul(
        concat!(include_str!("../../../../../runtime/cuda-on-cpu/tests/driver/common/kernels.ptx"), "\0").as_bytes(),
    ) {
        Ok(text) => text,
        Err(_) => c"",
    },
    c".version 6.0\n.target sm_61\n.address_size 64\n",
    c".version 6.0\n.target sm_61\n.address_size 64\n.visible .entry broken() { add.u32 %a",
];

const NAMES: [&CStr; 10] =
    [c"saxpy", c"count", c"store", c"sum", c"empty", c"stop", c"small", c"counter", c"where", c"nothing"];

/// The objects of a sequence of calls, and memory that the driver may read and write.
struct Objects {
    random: Random,
    live: BTreeMap<HandleKind, Vec<u64>>,
    /// Handles whose objects were destroyed.
    ended: Vec<u64>,
    /// The last module that a call took.
    image: &'static CStr,
    buffer: Vec<u8>,
    results: Box<[[u64; 64]; 4]>,
    values: Box<[u64; 8192]>,
    parameters: Box<[u64; 64]>,
    nodes: Box<[[u64; 2]; 2]>,
    kernel: Box<sys::CUDA_KERNEL_NODE_PARAMS>,
    memset: Box<sys::CUDA_MEMSET_NODE_PARAMS>,
    /// Set before use.
    copy: Box<MaybeUninit<sys::CUDA_MEMCPY3D>>,
    array: Box<[u64; 4]>,
}

fn address<T: ?Sized>(of: &mut T) -> u64 {
    std::ptr::from_mut(of).cast::<c_void>() as u64
}

impl Objects {
    /// Returns a handle, most often a live one of the kind.
    fn handle(&mut self, kind: HandleKind) -> u64 {
        let random = &mut self.random;
        let live = self.live.get(&kind).map(Vec::as_slice).unwrap_or_default();
        let others: Vec<u64> = match random.below(20) {
            0 => self.ended.clone(),
            1 => self.live.values().flatten().copied().collect(),
            // The default stream, the current context, or no object.
            2 => vec![0, 1, 2],
            3 => vec![random.bits() >> random.below(64)],
            _ => live.to_vec(),
        };
        // Inside of an allocation, or beyond it.
        let offset =
            if kind == Memory && random.below(100) < 20 { random.bits() >> (40 + random.below(24)) } else { 0 };
        random.choose(&others).copied().unwrap_or(0).wrapping_add(offset)
    }

    fn size(&mut self) -> u64 {
        let edges = [0, 1, 4, 31, 4096, 65_536, 1 << 20, 1 << 32, 1 << 62, u64::MAX];
        // Sizes beyond the memory are rare.
        let count = if self.random.below(8) == 0 { edges.len() } else { 7 };
        edges[self.random.below(count)]
    }

    fn small(&mut self) -> u64 {
        if self.random.below(100) < 80 { self.random.below(3) as u64 } else { self.random.below(70) as u64 }
    }

    /// Returns a small extent, or one beyond every limit: a driver would run each block of a large
    /// grid.
    fn extent(&mut self) -> u64 {
        if self.random.below(100) < 97 {
            return 1 + self.random.below(2) as u64;
        }
        let beyond = [0, 1 << 31, 0xffff_ffff];
        beyond[self.random.below(3)]
    }

    fn kernel_node(&mut self) -> u64 {
        let func = self.handle(Kernel) as sys::CUfunction;
        let [gx, gy, gz, bx, by, bz] = std::array::from_fn(|_| self.extent() as u32);
        *self.kernel = sys::CUDA_KERNEL_NODE_PARAMS {
            func,
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: self.small() as u32,
            kernelParams: self.parameters() as *mut *mut c_void,
            extra: std::ptr::null_mut(),
        };
        address(&mut *self.kernel)
    }

    fn memset_node(&mut self) -> u64 {
        *self.memset = sys::CUDA_MEMSET_NODE_PARAMS {
            dst: self.handle(Memory),
            pitch: self.size() as usize,
            value: self.random.bits() as u32,
            elementSize: [1, 2, 4, 3][self.random.below(4)],
            width: self.size() as usize,
            height: self.extent() as usize,
        };
        address(&mut *self.memset)
    }

    /// Describes a copy between device memory, arrays, and a small part of the host's buffer.
    fn copy(&mut self) -> u64 {
        let with_host = self.random.below(100) < 30;
        let side = |objects: &mut Objects| match objects.random.below(if with_host { 3 } else { 2 }) {
            0 => sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            1 => sys::CUmemorytype::CU_MEMORYTYPE_ARRAY,
            _ => sys::CUmemorytype::CU_MEMORYTYPE_HOST,
        };
        // SAFETY: zeros are valid for numbers and pointers. The type of memory has no zero, and is
        // set below.
        let mut copy: sys::CUDA_MEMCPY3D = unsafe {
            let mut copy = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
            (&raw mut (*copy.as_mut_ptr()).srcMemoryType).write(side(self));
            (&raw mut (*copy.as_mut_ptr()).dstMemoryType).write(side(self));
            copy.assume_init()
        };
        (copy.srcDevice, copy.dstDevice) = (self.handle(Memory), self.handle(Memory));
        (copy.srcArray, copy.dstArray) = (self.handle(Array) as sys::CUarray, self.handle(Array) as sys::CUarray);
        (copy.srcHost, copy.dstHost) = (self.buffer.as_ptr().cast(), self.buffer.as_mut_ptr().cast());
        // A copy with the host must stay in its buffer: 64 planes of 64 rows of 256 bytes.
        let bounded = |x: u64, most: u64| if with_host { x % most } else { x } as usize;
        copy.WidthInBytes = bounded(self.size(), 129);
        copy.Height = bounded(self.extent(), 32);
        copy.Depth = bounded(self.extent(), 32);
        (copy.srcXInBytes, copy.dstXInBytes) = (bounded(self.size(), 127), bounded(self.size(), 127));
        (copy.srcY, copy.dstY) = (bounded(self.small(), 32), bounded(self.small(), 32));
        (copy.srcZ, copy.dstZ) = (bounded(self.small(), 32), bounded(self.small(), 32));
        let pitch = if with_host { 256 } else { self.size() as usize };
        (copy.srcPitch, copy.dstPitch) = (pitch, pitch);
        let height = if with_host { 64 } else { self.small() as usize };
        (copy.srcHeight, copy.dstHeight) = (height, height);
        address(self.copy.write(copy))
    }

    fn parameters(&mut self) -> u64 {
        for i in 0..64 {
            self.values[i] =
                if self.random.below(100) < 70 { self.handle(Memory) } else { self.random.below(70) as u64 };
            self.parameters[i] = address(&mut self.values[i]);
        }
        address(&mut *self.parameters)
    }

    /// Returns an argument. `at` is its position.
    fn argument(&mut self, take: Take, at: usize) -> u64 {
        match take {
            In(kind) | End(kind) => self.handle(kind),
            Out(_) | Result => address(&mut self.results[at % 4]),
            Size => self.size(),
            Part => self.random.bits() >> (44 + self.random.below(20)) & (BUFFER as u64 - 1),
            Small => self.small(),
            Word => self.random.bits() >> self.random.below(64) & 0xffff_ffff,
            Extent => self.extent(),
            Buffer => self.buffer.as_mut_ptr() as u64,
            Name => NAMES[self.random.below(NAMES.len())].as_ptr() as u64,
            Image => {
                self.image = IMAGES[self.random.below(IMAGES.len())];
                self.image.as_ptr() as u64
            }
            Length => self.image.to_bytes_with_nul().len() as u64,
            Parameters => self.parameters(),
            Nodes => {
                let nodes = [self.handle(Node), self.handle(Node)];
                self.nodes[at % 2] = nodes;
                address(&mut self.nodes[at % 2])
            }
            Two => self.random.below(3) as u64,
            KernelNode => self.kernel_node(),
            MemsetNode => self.memset_node(),
            Copy => self.copy(),
            ArrayExtents => {
                // Width and height, then the format of an element and its channels.
                let format = [1, 2, 3, 8, 9, 10, 16, 32, 7][self.random.below(9)];
                *self.array = [self.extent() * 8, self.small(), format | [1, 2, 4, 3][self.random.below(4)] << 32, 0];
                address(&mut *self.array)
            }
            Null => 0,
        }
    }

    /// Makes a call, and notes new handles and those that ended.
    fn make(
        &mut self,
        function: Function,
        takes: &[Take],
        answers: &mut BTreeMap<u32, u64>,
        describe: &mut dyn FnMut(String),
    ) {
        let arguments: Vec<u64> = takes.iter().enumerate().map(|(at, take)| self.argument(*take, at)).collect();
        describe(format!("{}({arguments:x?})", function.name));
        // SAFETY: the table has the arguments of cuda.h. Pointers are to memory of this value.
        let code = unsafe { function.call(&arguments) };
        *answers.entry(code).or_insert(0) += 1;
        if code != 0 {
            return;
        }
        for (at, take) in takes.iter().enumerate() {
            match take {
                Out(kind) => {
                    let handle = self.results[at % 4][0];
                    self.live.entry(*kind).or_default().push(handle);
                }
                End(kind) => {
                    if let Some(live) = self.live.get_mut(kind) {
                        live.retain(|handle| *handle != arguments[at]);
                    }
                    self.ended.push(arguments[at]);
                }
                _ => {}
            }
        }
    }
}

/// Makes sequences of calls.
pub fn run(run: &Run, driver: &Library) {
    let functions: Vec<(Function, &[Take])> = CALLS.iter().map(|(name, takes)| (driver.find(name), *takes)).collect();
    let named = |name| driver.find(name);
    let (init, reset, synchronize) = (named("cuInit"), named("cuDevicePrimaryCtxReset_v2"), named("cuCtxSynchronize"));
    let (destroy, free_host, end_graph, end_executable) =
        (named("cuCtxDestroy_v2"), named("cuMemFreeHost"), named("cuGraphDestroy"), named("cuGraphExecDestroy"));
    let (unload, end_link, pop) = (named("cuLibraryUnload"), named("cuLinkDestroy"), named("cuCtxPopCurrent_v2"));
    // SAFETY: cuInit takes a number.
    assert_eq!(unsafe { init.call(&[0]) }, 0, "cuInit");
    let mut answers = BTreeMap::new();
    // SAFETY: zeros are valid for these structs of numbers and pointers.
    let (kernel, memset) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let mut objects = Objects {
        random: Random::new(0),
        live: BTreeMap::new(),
        ended: Vec::new(),
        image: c"",
        buffer: vec![0; BUFFER],
        results: Box::new([[0; 64]; 4]),
        values: Box::new([0; 8192]),
        parameters: Box::new([0; 64]),
        nodes: Box::new([[0; 2]; 2]),
        kernel: Box::new(kernel),
        memset: Box::new(memset),
        copy: Box::new(MaybeUninit::uninit()),
        array: Box::new([0; 4]),
    };
    run.each(|seed| {
        objects.random = Random::new(seed);
        objects.live.clear();
        objects.ended.clear();
        let mut sequence = |text: String| run.watch.begin(format!("seed {seed}: {text}"));
        // Most sequences begin with the calls that programs begin with.
        let begin =
            ["cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2", "cuModuleLoadData", "cuModuleGetFunction"];
        if objects.random.below(100) < 90 {
            for name in begin {
                let found = functions.iter().find(|(function, _)| function.name == name);
                if let Some((function, takes)) = found {
                    objects.make(*function, takes, &mut answers, &mut sequence);
                }
            }
        }
        for _ in 0..CALLS_EACH {
            let Some((function, takes)) = objects.random.choose(&functions).copied() else { break };
            // Few calls work after the context has ended.
            if !ENDS.contains(&function.name) || objects.random.below(100) < 20 {
                objects.make(function, takes, &mut answers, &mut sequence);
            }
        }
        // Objects that no context owns, then all contexts.
        sequence("the end".to_owned());
        // SAFETY: handles may have any value, and results are written to live numbers.
        unsafe {
            synchronize.call(&[]);
            for (kind, end) in [
                (Executable, end_executable),
                (Graph, end_graph),
                (Link, end_link),
                (Library, unload),
                (Host, free_host),
                (Context, destroy),
            ] {
                for handle in objects.live.remove(&kind).unwrap_or_default() {
                    end.call(&[handle]);
                }
            }
            while pop.call(&[address(&mut objects.results[0])]) == 0 {}
            reset.call(&[0]);
        }
    });
    println!("{} functions", functions.len());
    print(&answers);
}
