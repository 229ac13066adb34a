from topi.x86 import *
