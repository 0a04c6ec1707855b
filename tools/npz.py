"""Reading and writing .npz files whose keys are a model's own names (which may hold '/', ':' or spaces)."""
import zipfile

import numpy as np


def save(path, arrays):
    """Writes name -> array; unlike numpy.savez it reserves no name and its bytes depend on the contents alone."""
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(name + '.npy', date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, 'w', force_zip64=True) as out:
                np.lib.format.write_array(out, np.array(array, order='C'), allow_pickle=False)


def load(path):
    """Reads name -> array; a lone .npy inside keeps its name without the suffix."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            with archive.open(entry) as src:
                name = entry[:-4] if entry.endswith('.npy') else entry
                arrays[name] = np.lib.format.read_array(src, allow_pickle=False)
    return arrays
