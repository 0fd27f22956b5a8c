"""TokenMask: the mask of ids, as a layer of a functional model."""

import keras
import numpy as np
import pytest

from keras_tfm.models.token_mask import TokenMask


def array(tensor):
    return keras.ops.convert_to_numpy(tensor)


@pytest.mark.parametrize("pad_id", [0, 7])
def test_true_marks_a_real_token(pad_id):
    ids = np.array([[7, 1, 0], [0, 0, 7]])
    np.testing.assert_array_equal(array(TokenMask(pad_id)(ids)), ids != pad_id)


def test_the_symbolic_mask_is_boolean_and_of_the_shape_of_the_ids():
    ids = keras.Input((None,), dtype="int32")
    mask = TokenMask()(ids)
    assert mask.dtype == "bool"
    assert mask.shape == ids.shape == (None, None)
    assert TokenMask().compute_output_shape((3, 5)) == (3, 5)


def test_the_mask_layer_comes_back_from_its_config():
    layer = TokenMask(7, name="find")
    again = TokenMask.from_config(layer.get_config())
    assert (again.pad_id, again.name) == (7, "find")
    assert not layer.weights


def test_a_model_with_it_is_saved_and_loaded(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, TokenMask(7)(ids))
    model.save(tmp_path / "mask.keras")
    again = keras.saving.load_model(tmp_path / "mask.keras")
    found = again(np.array([[7, 1]]))
    assert array(found).tolist() == [[False, True]]
