from topi.generic import *
