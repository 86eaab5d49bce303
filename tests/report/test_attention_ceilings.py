"""Measured ceilings in the series: beside the data sheet, and only where something was measured."""

from tracehunch.attention.outcome import Device
from tracehunch.predict.roofline import Calibration
from tracehunch.report.attention_ceilings import ceilings_object, ceilings_text

H200 = Device("cuda", "NVIDIA H200", "2.13.0", cudnn=92000)
MEASURED = Calibration(4.32e12, {"bf16": 7.4205e14})


def test_a_measured_ceiling_stands_beside_the_data_sheets() -> None:
    said = ceilings_text(MEASURED, H200)
    assert "a copy 4.32 TB/s (90% of the data sheet)" in said
    assert "a bf16 product 742 TFLOP/s (75% of the data sheet)" in said
    assert "the guesses of time rest on them" in said


def test_a_gpu_without_a_data_sheet_has_measured_ceilings_alone() -> None:
    said = ceilings_text(MEASURED, Device("cuda", "NVIDIA Z999"))
    assert "4.32 TB/s" in said
    assert "data sheet" not in said
    assert "rest on them" not in said


def test_nothing_measured_and_recordings_say_nothing() -> None:
    assert ceilings_text(None, H200) == ""
    assert ceilings_text(MEASURED, Device("cuda", "NVIDIA H200", recorded=True)) == ""
    assert ceilings_text(Calibration(), H200) == ""


def test_the_json_has_what_was_measured() -> None:
    assert ceilings_object(MEASURED) == {"copy_bandwidth": 4.32e12, "matmul_flops": {"bf16": 7.4205e14}}
    assert ceilings_object(Calibration(1e12)) == {"copy_bandwidth": 1e12}
