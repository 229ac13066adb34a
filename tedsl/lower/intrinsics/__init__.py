"""Tensorization: loops replaced by intrinsics.

    region (what the loops inside cover) -> compare (is the formula of the intrinsic theirs?) -> match (both, and what differs)
    -> check_part (is what the user wrote surely wrong there?) -> bind (the intrinsic's buffers stand for the regions)
    -> tensorized_nest (body, or start values and updates, in the loops)
"""
