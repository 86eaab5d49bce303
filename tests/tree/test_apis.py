import pytest

from tracehunch.tree.apis import Api, api_of, waits


@pytest.mark.parametrize(
    ("name", "api"),
    [
        ("cudaLaunchKernel", Api.KERNEL),
        ("cudaLaunchKernelExC", Api.KERNEL),
        ("cuLaunchKernelEx", Api.KERNEL),
        ("cudaLaunchCooperativeKernel", Api.KERNEL),
        ("hipExtModuleLaunchKernel", Api.KERNEL),
        ("hipModuleLaunchKernel", Api.KERNEL),
        ("urEnqueueKernelLaunch", Api.KERNEL),
        ("cudaLaunchHostFunc", Api.OTHER),
        ("zeCommandListAppendLaunchKernel", Api.OTHER),
        ("cudaGraphLaunch", Api.GRAPH),
        ("hipGraphLaunch", Api.GRAPH),
        ("cudaGraphAddMemcpyNode", Api.OTHER),
        ("cudaMemcpyAsync", Api.MEMCPY),
        ("hipMemcpyWithStream", Api.MEMCPY),
        ("cuMemcpyHtoDAsync_v2", Api.MEMCPY),
        ("urEnqueueUSMMemcpy", Api.MEMCPY),
        ("cudaMemsetAsync", Api.MEMSET),
        ("urEnqueueUSMFill", Api.MEMSET),
        ("cudaEventRecord", Api.OTHER),
        ("cudaStreamIsCapturing", Api.OTHER),
        ("cudaEventQuery", Api.OTHER),
        ("cudaMemGetInfo", Api.OTHER),
        ("cudaDeviceSynchronize", Api.SYNC),
        ("hipStreamSynchronize", Api.SYNC),
        ("cudaMalloc", Api.ALLOC),
        ("cuMemCreate", Api.ALLOC),
        ("cudaMallocHost", Api.OTHER),
        ("cudaFree", Api.FREE),
        ("cudaFreeHost", Api.OTHER),
        ("cudaStreamBeginCapture", Api.CAPTURE_BEGIN),
        ("cudaStreamEndCapture", Api.CAPTURE_END),
    ],
)
def test_calls_are_known_by_name(name, api):
    assert api_of(name) is api


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaStreamSynchronize", True),
        ("hipMemcpyWithStream", True),
        ("cudaMemcpy", True),
        ("cudaMemcpyAsync", False),
        ("cuMemcpyHtoDAsync_v2", False),
    ],
)
def test_copies_that_are_not_async_wait(name, expected):
    assert waits(name) is expected
