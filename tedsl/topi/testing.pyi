from topi.testing import *
