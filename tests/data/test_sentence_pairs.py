"""SentencePairs and its readers, with tensorflow-datasets as the reference."""

import gzip

import pytest
import tensorflow_datasets as tfds

from keras_tfm.data.sentence_pairs import DataError
from keras_tfm.data.sentence_pairs import SentencePairs
from keras_tfm.data.sentence_pairs import read_parallel
from keras_tfm.data.sentence_pairs import read_tfds
from keras_tfm.data.sentence_pairs import read_translate_folder
from keras_tfm.data.sentence_pairs import read_tsv

PAIRS = [("um", "one"), ("dois 猫", "two cats"), ("três", "three")]


def folder(root):
    for split, rows in (("train", PAIRS), ("valid", PAIRS[:1])):
        for side, language in enumerate(("pt", "en")):
            text = "".join(row[side] + "\n" for row in rows)
            (root / f"{language}.{split}.txt").write_text(text, "utf-8")
    return root


def test_pairs_have_a_length_an_order_and_slices():
    pairs = SentencePairs(*zip(*PAIRS, strict=True), name="numbers")
    assert len(pairs) == 3
    assert list(pairs) == PAIRS
    assert pairs[-1] == PAIRS[-1]
    assert list(pairs[1:]) == PAIRS[1:]
    assert pairs[1:].name == "numbers"
    assert list(pairs.take(2)) == PAIRS[:2]
    assert list(pairs.take(99)) == PAIRS


def test_pairs_cannot_be_changed():
    pairs = SentencePairs(["a"], ["b"])
    with pytest.raises(AttributeError):
        pairs.sources = ("c",)


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        (["a", "b"], ["c"], "news: 2 sources but 1 targets"),
        ([], [], "news: there are no pairs"),
        (["a", "b"], ["c", " "], r"news: targets\[1\].*received ' '"),
        ([None], ["c"], r"news: sources\[0\].*received None"),
        ("ab", ["c", "d"], "`sources` must be a sequence.*'ab'"),
    ],
)
def test_wrong_pairs_are_named(sources, targets, message):
    with pytest.raises(DataError, match=message):
        SentencePairs(sources, targets, "news")


def test_take_needs_a_positive_number():
    with pytest.raises(ValueError, match="`number`"):
        SentencePairs(["a"], ["b"]).take(0)


def test_two_files_become_pairs_line_by_line(tmp_path):
    (tmp_path / "a.pt").write_bytes("um\r\ndois 猫\r\ntrês".encode())
    packed = gzip.compress(b"one\ntwo cats\nthree\n")
    (tmp_path / "a.en.gz").write_bytes(packed)
    pairs = read_parallel(tmp_path / "a.pt", tmp_path / "a.en.gz")
    assert list(pairs) == PAIRS


def test_files_of_unequal_length_are_named_with_both_counts(tmp_path):
    (tmp_path / "a.pt").write_text("um\ndois\n")
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    with pytest.raises(DataError, match=r"a\.pt has 2 lines but .*a\.en has 3"):
        read_parallel(tmp_path / "a.pt", tmp_path / "a.en")


def test_a_tsv_file_becomes_pairs(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in PAIRS), "utf-8")
    assert list(read_tsv(path)) == PAIRS


def test_a_quotation_mark_in_a_tsv_file_is_a_character(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('"um\t"one" two\n', "utf-8")
    assert list(read_tsv(path)) == [('"um', '"one" two')]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("um one", r"a\.tsv, line 2: expected two columns.* 1 in 'um one'"),
        ("um\tone\tuno", r"a\.tsv, line 2: expected two columns.* 3 in"),
        ("\tone", r"a\.tsv, line 2: the source column is empty"),
        ("um\t ", r"a\.tsv, line 2: the target column is empty"),
        ("", r"a\.tsv, line 2: the line is empty"),
    ],
)
def test_a_wrong_tsv_line_is_named(tmp_path, line, message):
    path = tmp_path / "a.tsv"
    path.write_text(f"x\ty\n{line}\nz\tw\n")
    with pytest.raises(DataError, match=message) as caught:
        read_tsv(path)
    assert "\n" not in str(caught.value)


def test_a_translate_folder_reads_as_tfds_reads_it(tmp_path):
    builder = tfds.TranslateFolder(str(folder(tmp_path)))
    for split in ("train", "valid"):
        ours = read_translate_folder(tmp_path, "pt", "en", split)
        theirs = [
            (row["pt"].decode(), row["en"].decode())
            for row in tfds.as_numpy(builder.as_dataset(split=split))
        ]
        assert list(ours) == theirs
        assert list(read_tfds(builder, split, "pt", "en")) == theirs


@pytest.mark.parametrize(
    ("language", "split", "message"),
    [
        (
            "en",
            "test",
            r"no file pt\.test\.txt; there are the splits 'train', 'valid'",
        ),
        (
            "de",
            "train",
            r"no file de\.train\.txt; there are no splits of 'de'.*"
            "languages 'en', 'pt'",
        ),
    ],
)
def test_a_missing_file_of_a_folder_names_those_there_are(
    tmp_path, language, split, message
):
    with pytest.raises(DataError, match=message):
        read_translate_folder(folder(tmp_path), "pt", language, split)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        read_translate_folder(tmp_path / "none", "pt", "en", "train")


def test_packed_files_in_a_folder_count_too(tmp_path):
    for path in folder(tmp_path).glob("*.train.txt"):
        packed = gzip.compress(path.read_bytes())
        path.with_name(path.name + ".gz").write_bytes(packed)
        path.unlink()
    assert list(read_translate_folder(tmp_path, "pt", "en", "train")) == PAIRS


class TinyTranslate(tfds.core.GeneratorBasedBuilder):
    """A translation data set that needs no download."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.Translation(languages=("pt", "en")),
            supervised_keys=("pt", "en"),
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for key, (source, target) in enumerate(PAIRS):
            yield key, {"pt": source, "en": target}


def test_a_data_set_of_tfds_becomes_pairs(tmp_path):
    pairs = read_tfds("tiny_translate", "train", data_dir=tmp_path)
    assert sorted(pairs) == sorted(PAIRS)
    assert pairs.name == "tiny_translate/1.0.0, train"
    turned = read_tfds("tiny_translate", "train", "en", "pt", data_dir=tmp_path)
    assert list(turned) == [(target, source) for source, target in pairs]
    (part,) = read_tfds("tiny_translate", "train[:1]", data_dir=tmp_path)
    assert part == pairs[0]


def test_a_missing_split_of_a_data_set_names_those_there_are(tmp_path):
    with pytest.raises(DataError, match=r"no split 'test'.*splits 'train'"):
        read_tfds("tiny_translate", "test", data_dir=tmp_path / "tiny")


def test_a_missing_split_of_a_folder_builder_names_those_there_are(tmp_path):
    builder = tfds.TranslateFolder(str(folder(tmp_path)))
    with pytest.raises(DataError, match="splits 'train', 'valid'"):
        read_tfds(builder, "test", "pt", "en")


def test_a_missing_language_of_a_data_set_names_those_there_are(tmp_path):
    with pytest.raises(
        DataError, match=r"no target language 'de'.*languages 'en', 'pt'"
    ):
        read_tfds("tiny_translate", "train", "pt", "de", data_dir=tmp_path)


def test_an_unknown_data_set_is_one_line(tmp_path):
    with pytest.raises(DataError, match="'no_such_set' cannot be found") as e:
        read_tfds("no_such_set", "train", data_dir=tmp_path)
    assert "\n" not in str(e.value)


def test_a_data_set_is_not_downloaded_unasked(tmp_path):
    name = "ted_hrlr_translate/pt_to_en"
    with pytest.raises(DataError, match=r"not on this machine .*download=True"):
        read_tfds(name, "train", data_dir=tmp_path, download=False)
    read_tfds("tiny_translate", "train", data_dir=tmp_path)
    again = read_tfds(
        "tiny_translate", "train", data_dir=tmp_path, download=False
    )
    assert len(again) == len(PAIRS)


def test_a_data_set_that_cannot_be_downloaded_is_one_line(
    tmp_path, monkeypatch
):
    def no_network(*args, **kwargs):
        raise ConnectionError("no route to host\nmore lines")

    monkeypatch.setattr(TinyTranslate, "download_and_prepare", no_network)
    with pytest.raises(
        DataError,
        match="cannot be downloaded: ConnectionError: no route to host",
    ) as caught:
        read_tfds("tiny_translate", "train", data_dir=tmp_path)
    assert "\n" not in str(caught.value)
