"""`python -m keras_tfm` is `keras-tfm`."""

import sys

from keras_tfm.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
