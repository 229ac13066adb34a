from topi.tag import *
