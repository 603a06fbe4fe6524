/* cuda.h: the few declarations that Triton's generated launchers use, for a driver that launches nothing (driver.c). */
#ifndef FOLDPROOF_STUB_CUDA_H
#define FOLDPROOF_STUB_CUDA_H

#include <stdint.h>
#include <stdlib.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct stub_module *CUmodule;
typedef struct stub_function *CUfunction;
typedef struct stub_stream *CUstream;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum {
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_FUNC_CACHE_PREFER_SHARED = 1,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};

CUresult cuGetErrorString(CUresult code, const char **text);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuDeviceGetAttribute(int *value, int attribute, int device);
CUresult cuFuncSetCacheConfig(CUfunction function, int config);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **args,
                        void **extra);
#endif
