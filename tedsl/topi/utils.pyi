from topi.utils import *
