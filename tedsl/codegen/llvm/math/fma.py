"""The fused multiply-add of doubles without the instruction: in integers of 128 bits, rounded once.

Product and addend get their leading bit to position 125; the smaller one is shifted down, what falls off is kept as one
sticky bit. Where they cancel, at most one position is shifted and nothing falls off: the sum is exact to the sticky bit.
"""

SYMBOL = "tedsl.fma.f64"

FMA_F64 = """
declare i128 @llvm.ctlz.i128(i128, i1)

define internal i128 @tedsl.sticky(i128 %v, i64 %n) nounwind {
  %far = icmp ugt i64 %n, 127
  %safe = select i1 %far, i64 127, i64 %n
  %wide = zext i64 %safe to i128
  %kept = lshr i128 %v, %wide
  %back = shl i128 %kept, %wide
  %same = icmp eq i128 %back, %v
  %lost = xor i1 %same, true
  %bit = zext i1 %lost to i128
  %jammed = or i128 %kept, %bit
  %some = icmp ne i128 %v, 0
  %only = zext i1 %some to i128
  %r = select i1 %far, i128 %only, i128 %jammed
  ret i128 %r
}

define internal double @tedsl.fma.f64(double %x, double %y, double %z) noinline nounwind {
entry:
  %xb = bitcast double %x to i64
  %yb = bitcast double %y to i64
  %zb = bitcast double %z to i64
  %xh = lshr i64 %xb, 52
  %yh = lshr i64 %yb, 52
  %zh = lshr i64 %zb, 52
  %xe = and i64 %xh, 2047
  %ye = and i64 %yh, 2047
  %ze = and i64 %zh, 2047
  %xi = icmp eq i64 %xe, 2047
  %yi = icmp eq i64 %ye, 2047
  %zi = icmp eq i64 %ze, 2047
  %x0 = fcmp oeq double %x, 0x0000000000000000
  %y0 = fcmp oeq double %y, 0x0000000000000000
  %s1 = or i1 %xi, %yi
  %s2 = or i1 %x0, %y0
  %s3 = or i1 %s1, %s2
  br i1 %s3, label %plain, label %addend
plain:
  %product = fmul double %x, %y
  %sum = fadd double %product, %z
  ret double %sum
addend:
  br i1 %zi, label %unbounded, label %exact
unbounded:
  %quiet = fadd double %z, %z
  ret double %quiet
exact:
  %xf = and i64 %xb, 4503599627370495
  %yf = and i64 %yb, 4503599627370495
  %zf = and i64 %zb, 4503599627370495
  %xn = icmp ne i64 %xe, 0
  %yn = icmp ne i64 %ye, 0
  %zn = icmp ne i64 %ze, 0
  %xl = select i1 %xn, i64 4503599627370496, i64 0
  %yl = select i1 %yn, i64 4503599627370496, i64 0
  %zl = select i1 %zn, i64 4503599627370496, i64 0
  %xm = or i64 %xf, %xl
  %ym = or i64 %yf, %yl
  %zm = or i64 %zf, %zl
  %xe1 = select i1 %xn, i64 %xe, i64 1
  %ye1 = select i1 %yn, i64 %ye, i64 1
  %ze1 = select i1 %zn, i64 %ze, i64 1
  %xw = zext i64 %xm to i128
  %yw = zext i64 %ym to i128
  %zw = zext i64 %zm to i128
  %p = mul i128 %xw, %yw
  %pc = call i128 @llvm.ctlz.i128(i128 %p, i1 false)
  %pu = sub i128 %pc, 2
  %pn = shl i128 %p, %pu
  %pu64 = trunc i128 %pu to i64
  %ee = add i64 %xe1, %ye1
  %ee1 = sub i64 %ee, 2150
  %pe = sub i64 %ee1, %pu64
  %z0 = icmp eq i64 %zm, 0
  %zc = call i128 @llvm.ctlz.i128(i128 %zw, i1 false)
  %zu = sub i128 %zc, 2
  %zs = shl i128 %zw, %zu
  %zu64 = trunc i128 %zu to i64
  %ze2 = sub i64 %ze1, 1075
  %ze3 = sub i64 %ze2, %zu64
  %ze4 = select i1 %z0, i64 %pe, i64 %ze3
  %higher = icmp sgt i64 %pe, %ze4
  %e = select i1 %higher, i64 %pe, i64 %ze4
  %pd = sub i64 %e, %pe
  %zd = sub i64 %e, %ze4
  %pa = call i128 @tedsl.sticky(i128 %pn, i64 %pd)
  %za = call i128 @tedsl.sticky(i128 %zs, i64 %zd)
  %ps = xor i64 %xb, %yb
  %differ = xor i64 %ps, %zb
  %opposite = icmp slt i64 %differ, 0
  %added = add i128 %pa, %za
  %taken = sub i128 %pa, %za
  %below = icmp slt i128 %taken, 0
  %turned = sub i128 0, %taken
  %size = select i1 %below, i128 %turned, i128 %taken
  %s = select i1 %opposite, i128 %size, i128 %added
  %flip = and i1 %opposite, %below
  %signs = select i1 %flip, i64 %zb, i64 %ps
  %sign = and i64 %signs, -9223372036854775808
  %nothing = icmp eq i128 %s, 0
  br i1 %nothing, label %zero, label %round
zero:
  ret double 0x0000000000000000
round:
  %sc = call i128 @llvm.ctlz.i128(i128 %s, i1 true)
  %sc64 = trunc i128 %sc to i64
  %msb = sub i64 127, %sc64
  %em = add i64 %e, %msb
  %t0 = sub i64 %em, 52
  %deep = icmp slt i64 %t0, -1074
  %t = select i1 %deep, i64 -1074, i64 %t0
  %n = sub i64 %t, %e
  %up = icmp sle i64 %n, 0
  br i1 %up, label %left, label %right
left:
  %ln = sub i64 0, %n
  %lw = zext i64 %ln to i128
  %lq = shl i128 %s, %lw
  br label %pack
right:
  %gone = icmp ugt i64 %n, 127
  br i1 %gone, label %pack, label %half
half:
  %nw = zext i64 %n to i128
  %q = lshr i128 %s, %nw
  %whole = shl i128 %q, %nw
  %rest = sub i128 %s, %whole
  %h1 = sub i128 %nw, 1
  %h = shl i128 1, %h1
  %more = icmp ugt i128 %rest, %h
  %tie = icmp eq i128 %rest, %h
  %odd = trunc i128 %q to i1
  %even = and i1 %tie, %odd
  %inc = or i1 %more, %even
  %one = zext i1 %inc to i128
  %rq = add i128 %q, %one
  br label %pack
pack:
  %m = phi i128 [ %lq, %left ], [ 0, %right ], [ %rq, %half ]
  %m64 = trunc i128 %m to i64
  %field = add i64 %t, 1074
  %high = shl i64 %field, 52
  %bits = add i64 %high, %m64
  %over = icmp uge i64 %bits, 9218868437227405312
  %clipped = select i1 %over, i64 9218868437227405312, i64 %bits
  %signed = or i64 %clipped, %sign
  %r = bitcast i64 %signed to double
  ret double %r
}
"""
