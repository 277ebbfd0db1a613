// Empty: the target fb_test_headers exists for the precompiled headers that all tests share.
