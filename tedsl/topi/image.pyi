from topi.image import *
