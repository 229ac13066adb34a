from topi.cuda import *
