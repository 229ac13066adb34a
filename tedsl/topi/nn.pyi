from topi.nn import *
