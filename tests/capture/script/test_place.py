import pytest

from tracehunch.capture.script.place import Rank, place, rank_here


def test_ranks_are_what_the_launcher_says():
    assert rank_here({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}) == Rank(3, 8)
    assert rank_here({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}) == Rank(0, 2)
    assert rank_here({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}) is None
    assert rank_here({}) is None


def test_a_name_of_our_own_never_replaces_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = place(None, "train", None)
    assert first == tmp_path / "tracehunch-train.json.gz"
    first.touch()
    assert place(None, "train", None).name == "tracehunch-train-2.json.gz"
    assert place(None, "train", Rank(1, 2)).name == "tracehunch-train-rank1.json.gz"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("t.json", "t-rank1.json"),
        ("a.b.json.gz", "a.b-rank1.json.gz"),
        ("new/", "tracehunch-x-rank1.json.gz"),
    ],
)
def test_a_given_name_is_kept_and_the_rank_put_before_its_extension(tmp_path, given, name):
    folder = tmp_path / given if given.endswith("/") else tmp_path
    assert place(f"{tmp_path}/{given}", "x", Rank(1, 2)) == folder / name
    folder.mkdir(exist_ok=True)
    assert place(tmp_path / given, "x", Rank(1, 2)) == folder / name
