// A CUDA device that computes nothing: enough of the CUDA runtime, of the driver and of cuBLAS for PyTorch to allocate,
// launch and free as on a real one, without a GPU. Kernels are accepted and not run, copies to the host give zeros, and
// memory is counted, not held. What PyTorch's caching allocator then does is what it does on a device of
// FULLBORE_DEVICE_BYTES (80 GiB), to the byte. Loaded before PyTorch's own libraries; see memory.py.
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const size_t kPage = (size_t)2 << 20;  // the driver gives no less

static size_t capacity(void) {
  const char* text = getenv("FULLBORE_DEVICE_BYTES");
  return text != NULL ? strtoull(text, NULL, 10) : (size_t)80 << 30;
}

// ---- memory ----

#define MOST 200000
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t used;  // bytes
static struct {
  uintptr_t at;
  size_t size;
} held[MOST];
static size_t held_count;
static size_t pages[MOST];  // sizes of what cuMemCreate gave, by handle
static size_t page_count = 1;
static uintptr_t next_address = 0x7f0000000000;

static int take(size_t size) {
  if (used + size > capacity()) return 0;
  used += size;
  return 1;
}

cudaError_t cudaMalloc(void** at, size_t size) {
  cudaError_t status = cudaErrorMemoryAllocation;
  const size_t whole = (size + kPage - 1) / kPage * kPage;
  pthread_mutex_lock(&lock);
  if (held_count < MOST && take(whole)) {
    held[held_count].at = next_address;
    held[held_count++].size = whole;
    *at = (void*)next_address;
    next_address += whole;
    status = cudaSuccess;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

cudaError_t cudaFree(void* at) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; at != NULL && i < held_count; ++i) {
    if (held[i].at != (uintptr_t)at) continue;
    used -= held[i].size;
    held[i] = held[--held_count];
    break;
  }
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  *total = capacity();
  *left = capacity() - used;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind == cudaMemcpyDeviceToHost) memset(to, 0, size);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, enum cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, size, kind, NULL);
}

cudaError_t cudaHostAlloc(void** at, size_t size, unsigned flags) {
  *at = malloc(size);
  return *at != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* at) {
  free(at);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* at) {
  memset(attributes, 0, sizeof *attributes);
  attributes->type = cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

// ---- the device ----

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 12080, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 12080, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int a, int b) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp* its, int device) {
  memset(its, 0, sizeof *its);
  strcpy(its->name, "a device that computes nothing");
  its->totalGlobalMem = capacity();
  its->major = 9;
  its->multiProcessorCount = 132;
  its->warpSize = 32;
  its->maxThreadsPerBlock = 1024;
  its->maxThreadsPerMultiProcessor = 2048;
  its->maxBlocksPerMultiProcessor = 32;
  its->maxThreadsDim[0] = its->maxThreadsDim[1] = 1024;
  its->maxThreadsDim[2] = 64;
  its->maxGridSize[0] = 2147483647;
  its->maxGridSize[1] = its->maxGridSize[2] = 65535;
  its->sharedMemPerBlock = 48 << 10;
  its->sharedMemPerBlockOptin = 227 << 10;
  its->sharedMemPerMultiprocessor = 228 << 10;
  its->regsPerBlock = its->regsPerMultiprocessor = 65536;
  its->l2CacheSize = 50 << 20;
  its->clockRate = 1980000;
  its->memoryClockRate = 2619000;
  its->memoryBusWidth = 5120;
  its->memPitch = 2147483647;
  its->textureAlignment = 512;
  its->unifiedAddressing = its->canMapHostMemory = its->concurrentKernels = its->managedMemory = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  struct cudaDeviceProp its;
  cudaGetDeviceProperties_v2(&its, device);
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = its.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = its.minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = its.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = its.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = its.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrWarpSize:
      *value = its.warpSize;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = (int)its.sharedMemPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = (int)its.sharedMemPerBlockOptin;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = (int)its.sharedMemPerMultiprocessor;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = its.regsPerBlock;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = its.maxGridSize[0];
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *value = its.maxGridSize[1];
      break;
    case cudaDevAttrL2CacheSize:
      *value = its.l2CacheSize;
      break;
    default:
      *value = 1;
  }
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* its, const void* function) {
  memset(its, 0, sizeof *its);
  its->maxThreadsPerBlock = 1024;
  its->numRegs = 32;
  its->binaryVersion = its->ptxVersion = 90;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* f, int threads,
                                                          size_t shared) {
  return *blocks = 2, cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* f, int threads,
                                                                   size_t s, unsigned flags) {
  return *blocks = 2, cudaSuccess;
}

// ---- streams, events, kernels: all is done at once ----

static uintptr_t handles = 0x1000;
static void* new_handle(void) { return (void*)__atomic_add_fetch(&handles, 16, __ATOMIC_RELAXED); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned f, int p) {
  return *s = new_handle(), cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned f) { return *s = new_handle(), cudaSuccess; }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int* priority) { return *priority = 0, cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned f) { return *e = new_handle(), cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { return *e = new_handle(), cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { return *ms = 1, cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** nodes, size_t* count) {
  if (id != NULL) *id = 0;
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}

// ---- the driver, as expandable segments use it ----

static CUresult reserve(CUdeviceptr* at, size_t size, size_t alignment, CUdeviceptr wanted,
                        unsigned long long flags) {
  pthread_mutex_lock(&lock);
  *at = next_address;
  next_address += size;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                       unsigned long long flags) {
  CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  if (page_count < MOST && take(size)) {
    pages[page_count] = size;
    *handle = page_count++;
    status = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static CUresult release(CUmemGenericAllocationHandle handle) {
  pthread_mutex_lock(&lock);
  used -= pages[handle];
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

static CUresult granularity(size_t* bytes, const CUmemAllocationProp* prop,
                            CUmemAllocationGranularity_flags option) {
  return *bytes = kPage, CUDA_SUCCESS;
}
static CUresult attribute(int* value, CUdevice_attribute which, CUdevice device) {
  return *value = 1, CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return *flags = 0, *active = 1, CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = (CUcontext)0x10, CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult error, const char** text) {
  return *text = "an error of a device that computes nothing", CUDA_SUCCESS;
}

int fullbore_nothing(void) { return 0; }

cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* result) {
  static const struct {
    const char* name;
    void* function;
  } known[] = {
      {"cuMemAddressReserve", reserve},
      {"cuMemCreate", create},
      {"cuMemRelease", release},
      {"cuMemGetAllocationGranularity", granularity},
      {"cuDeviceGetAttribute", attribute},
      {"cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState},
      {"cuCtxGetCurrent", cuCtxGetCurrent},
      {"cuGetErrorString", cuGetErrorString},
  };
  *function = fullbore_nothing;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(name, known[i].name) == 0) *function = known[i].function;
  if (result != NULL) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPoint(name, function, flags, result);
}

// ---- cuBLAS: a heuristic has one answer ----

int cublasCreate_v2(void** handle) { return *handle = new_handle(), 0; }
int cublasLtCreate(void** handle) { return *handle = new_handle(), 0; }
int cublasGetMathMode(void* handle, int* mode) { return *mode = 0, 0; }
int cublasGetPointerMode_v2(void* handle, int* mode) { return *mode = 0, 0; }
int cublasLtMatmulAlgoGetHeuristic(void* handle, void* operation, void* a, void* b, void* c, void* d,
                                   void* preference, int wanted, void* results, int* found) {
  memset(results, 0, 64);
  return *found = 1, 0;
}

// All that succeeds by doing nothing.
#define NOTHING(name) \
  __asm__(".globl " #name "\n.type " #name ", @function\n.set " #name ", fullbore_nothing");
NOTHING(cudaSetDevice)
NOTHING(cudaDeviceSynchronize)
NOTHING(cudaDeviceSetLimit)
NOTHING(cudaGetLastError)
NOTHING(cudaPeekAtLastError)
NOTHING(cudaMemsetAsync)
NOTHING(cudaMemset)
NOTHING(cudaStreamDestroy)
NOTHING(cudaStreamQuery)
NOTHING(cudaStreamSynchronize)
NOTHING(cudaStreamWaitEvent)
NOTHING(cudaThreadExchangeStreamCaptureMode)
NOTHING(cudaEventDestroy)
NOTHING(cudaEventQuery)
NOTHING(cudaEventRecord)
NOTHING(cudaEventRecordWithFlags)
NOTHING(cudaEventSynchronize)
NOTHING(cudaLaunchKernel)
NOTHING(cudaLaunchKernelExC)
NOTHING(cudaLaunchCooperativeKernel)
NOTHING(cudaFuncSetAttribute)
NOTHING(cuModuleLoadData)
NOTHING(cuModuleLoadDataEx)
NOTHING(cuModuleGetFunction)
NOTHING(cuModuleGetGlobal)
NOTHING(cuModuleGetGlobal_v2)
NOTHING(cuModuleUnload)
NOTHING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NOTHING(cuOccupancyMaxActiveClusters)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchKernelEx)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxFromGreenCtx)
NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuDeviceGetDevResource)
NOTHING(cuDevResourceGenerateDesc)
NOTHING(cuDevSmResourceSplitByCount)
NOTHING(cuGreenCtxCreate)
NOTHING(cuLinkCreate)
NOTHING(cuLinkCreate_v2)
NOTHING(cuLinkAddData)
NOTHING(cuLinkAddData_v2)
NOTHING(cuLinkComplete)
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncGetAttribute)
NOTHING(cuPointerGetAttribute)
NOTHING(cuStreamWriteValue32)
NOTHING(cuTensorMapEncodeTiled)
NOTHING(cublasDestroy_v2)
NOTHING(cublasSetStream_v2)
NOTHING(cublasSetWorkspace_v2)
NOTHING(cublasSetMathMode)
NOTHING(cublasSetPointerMode_v2)
NOTHING(cublasSgemm_v2)
NOTHING(cublasGemmEx)
NOTHING(cublasSgemmEx)
NOTHING(cublasSgemv_v2)
NOTHING(cublasSdot_v2)
NOTHING(cublasSgemmStridedBatched)
NOTHING(cublasGemmStridedBatchedEx)
NOTHING(cublasLtMatmul)
